package wire

import "fmt"

// DecodeError describes an object of the server that does not fit its Go type. Ref and
// ResourceVersion have only what could be read of the object's metadata. Err is the cause.
type DecodeError struct {
	Ref             Ref
	ResourceVersion string
	Err             error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s: %v", e.Ref, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }
