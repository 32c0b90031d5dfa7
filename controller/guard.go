package controller

import (
	"fmt"
	"runtime/debug"
)

// panicError is a panic that became an error.
type panicError struct {
	what  string
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.what, e.value) }

// guard calls f and returns its error. A panic in f becomes an error that names what, which f
// may change while it runs.
func guard(what *string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{what: *what, value: value, stack: debug.Stack()}
		}
	}()
	return f()
}

// guardAuthor calls a function that the author gave and that nothing depends on. It logs a
// panic in f and goes on.
func (e *engine[T]) guardAuthor(what string, f func()) {
	err := guard(&what, func() error {
		f()
		return nil
	})
	if err != nil {
		e.log.Error(what+" failed", append([]any{"controller", e.name, "error", err}, stackOf(err, true)...)...)
	}
}
