package cache

// RestorationError is an error of a stream whose server was restored from a backup, or contradicts what it has shown. The
// stream lists its objects again, and no request has failed.
type RestorationError struct{ Err error }

func (e *RestorationError) Error() string { return e.Err.Error() }

func (e *RestorationError) Unwrap() error { return e.Err }
