package cache

import "github.com/yare-go/yare/kube"

// Option changes how [Cache] work.
type Option func(*options)

type options struct {
	onError func(kube.Stream, error)
}

// OnError is told every trouble of a stream: a watch that failed and is taken up again, an
// object that cannot be read (a [*kube.DecodeError]), an index function that panicked. It
// is called in the goroutines of the streams, so that it must be safe for concurrent use
// and must not block. Default: they are only counted, see [Stats].
func OnError(f func(kube.Stream, error)) Option {
	return func(o *options) { o.onError = f }
}
