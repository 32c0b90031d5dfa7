package pods

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// messageLimit is the most bytes of a server's message. API servers send 32 KB and a byte.
	messageLimit = 1 << 20
	// pingPeriod is the interval of the pings, and how long the answer to a ping may take. Pings find a
	// dead connection, and keep proxies from ending a silent connection.
	pingPeriod = 30 * time.Second
)

// podsResource returns the resource of corev1.Pod without linking the package of that type.
func podsResource() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}
}

// openSocket opens a WebSocket to a subresource of a Pod. An error of the server is a [*wire.Error].
func openSocket(ctx context.Context, c *kube.Client, namespace, name, subresource, protocol string, query url.Values) (*websocket.Conn, error) {
	what := fmt.Sprintf("%s of the Pod %q", subresource, namespace+"/"+name)
	switch {
	case c == nil:
		return nil, fmt.Errorf("%s: the client is nil", what)
	case namespace == "" || name == "":
		return nil, fmt.Errorf("%s: its namespace or its name is empty", what)
	}
	upgrade := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		response, err := c.Do(r.Context(), &wire.Request{
			Verb: wire.VerbGet, Resource: podsResource(), Namespace: namespace, Name: name, Subresource: subresource,
			Query: query, Header: r.Header, WantsBodyReader: true,
		})
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: response.Code, Header: response.Header, Body: response.BodyReader, Request: r}, nil
	})
	socket, response, err := websocket.Dial(ctx, "http://pod/", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: upgrade}, Subprotocols: []string{protocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if refused, ok := kube.AsError(err); ok {
		return nil, refused
	}
	if err != nil {
		if response != nil && response.Body != nil {
			response.Body.Close()
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if got := socket.Subprotocol(); got != protocol {
		_ = socket.CloseNow()
		return nil, fmt.Errorf("%s: the server speaks %q and not %s, which API servers do since Kubernetes 1.30", what, got, protocol)
	}
	socket.SetReadLimit(messageLimit)
	return socket, nil
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errSilent = errors.New("the connection is dead: a ping had no answer")

// keepAlive pings until ctx ends. It calls end if a ping has no answer.
func keepAlive(ctx context.Context, socket *websocket.Conn, end func(error)) {
	ticker := time.NewTicker(pingPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		answered, cancel := context.WithTimeout(ctx, pingPeriod)
		err := socket.Ping(answered)
		cancel()
		if err != nil && ctx.Err() == nil {
			end(errSilent)
			return
		}
	}
}
