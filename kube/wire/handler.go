package wire

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// Handler serves requests. For an answer other than 2xx it returns an [*Error]. It must be safe
// for concurrent use, and must return when ctx ends.
//
// The order of yare's own handlers stands in docs/architecture.md, "The pipeline of requests".
type Handler interface {
	Do(ctx context.Context, r *Request) (*Response, error)
}

// HandlerFunc is a function that serves requests as a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (*Response, error)

// Do calls f.
func (f HandlerFunc) Do(ctx context.Context, r *Request) (*Response, error) { return f(ctx, r) }

// Response is the answer to a request, as the bytes of the server.
type Response struct {
	Code   int
	Header http.Header
	// Body is the whole answer. It is empty if there is a BodyReader.
	Body []byte
	// BodyReader reads the answer to a watch, and the answer to a request with WantsBodyReader. The caller closes it.
	// After a switch of protocols (Code 101) it is an io.ReadWriteCloser.
	BodyReader io.ReadCloser
	// Pings is true if the transport checks the connection of the BodyReader by pings, as HTTP/2 does. A connection
	// without pings may be dead without an error.
	Pings bool
	// Cached is true if no request was sent for the answer.
	Cached bool
	// Items are the objects of a list that was not read from the server, in place of Body. A [*DecodeError]
	// stands for an object that cannot be read. Any other error is in the last pair. The sequence reads an
	// object just before it yields the object.
	Items iter.Seq2[jsontext.Value, error]
}
