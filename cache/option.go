package cache

import "github.com/yare-go/yare/kube"

// Option changes how a [Cache] works.
type Option func(*options)

type options struct {
	onError     func(kube.Stream, error)
	onRecovered func(kube.Stream)
}

// OnError sets a function that receives every error of a stream. A [*kube.Error] concerns
// the stream as a whole: a list or a watch failed, and is repeated. The error that the server was
// restored from a backup concerns the stream as a whole too. Any other error concerns one object: the
// object cannot be read (a [*kube.DecodeError]), or an index function panicked.
//
// The goroutines of the streams call f, so it must be safe for concurrent use and must not
// block. Default: errors are only counted, see [Stats].
func OnError(f func(kube.Stream, error)) Option {
	return func(o *options) { o.onError = f }
}

// OnRecovered sets a function that is called when a stream works again after an error of the stream as a
// whole. It is called under the same conditions as the function of [OnError].
func OnRecovered(f func(kube.Stream)) Option {
	return func(o *options) { o.onRecovered = f }
}
