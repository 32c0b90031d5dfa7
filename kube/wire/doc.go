// Package wire has the requests and the answers of API servers before types: a [Request] with a verb, a resource and
// bytes, a [Response], and the [Handler] between them.
//
// The package is for authors of handlers: layers between a kube.Client and a server, such as a cache, a recorder or a
// fault on purpose. A layer is put into a client by kube.Client.With:
//
//	client = client.With(func(next wire.Handler) wire.Handler {
//		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
//			log.Print(r.Verb, " ", r.Ref())
//			return next.Do(ctx, r)
//		})
//	})
//
// Authors of operators meet a few of its words: a [Resource], a [Verb], and an [Error], which describes a request that
// did not succeed. The functions of package kube, such as kube.IsNotFound, classify errors.
package wire
