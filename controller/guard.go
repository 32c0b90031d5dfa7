package controller

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/yare-go/yare/internal/logctx"
)

// panicError is a panic that became an error.
type panicError struct {
	what  string
	value any
	// site is the file and the line of the statement that panicked.
	site  string
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.what, e.value) }

// guard calls f and returns its error. A panic in f becomes an error that names what, which f
// may change while it runs.
func guard(what *string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{what: *what, value: value, site: logctx.PanicSite(), stack: logctx.PanicStack()}
		}
	}()
	return f()
}

// guardAuthor calls a function that the author gave and that nothing depends on. It logs a
// panic in f and goes on.
func (e *engine) guardAuthor(what string, f func()) {
	err := guard(&what, func() error {
		f()
		return nil
	})
	if err != nil {
		e.log.LogAttrs(context.Background(), slog.LevelError, what+" failed",
			append([]slog.Attr{slog.String("controller", e.name), slog.Any("error", err)}, panicAttrs(err, true)...)...)
	}
}
