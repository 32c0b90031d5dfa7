package pods

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
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
	// bulkSize is the number of bytes behind which a ping may have to wait: a server reads the ping only when the
	// command has taken what came before.
	bulkSize = 64 << 10
)

// socket is a WebSocket to a Pod. Its goroutine [socket.readMessages] reads one message ahead of the consumer.
// Therefore it finds the answers to pings while no consumer waits for a message.
type socket struct {
	conn *websocket.Conn
	// messages is closed after the last message. err is why the messages ended. It is set before messages is closed.
	messages chan []byte
	err      error

	mu       sync.Mutex
	activity activity
}

// activity counts what has passed through a socket.
type activity struct {
	// read and taken are the numbers of messages that have come, and that their consumer has taken.
	read, taken int
	// written is the number of bytes sent. answered is the number of bytes sent before the last ping that was answered.
	written, answered int
}

// podsResource returns the resource of corev1.Pod without linking the package of that type.
func podsResource() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}
}

// openSocket opens a WebSocket to a subresource of a Pod. An error of the server is a [*wire.Error].
func openSocket(
	ctx context.Context, c *kube.Client, namespace, name, subresource, protocol string, query url.Values,
) (*socket, error) {
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
	conn, response, err := websocket.Dial(ctx, "http://pod/", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: upgrade}, Subprotocols: []string{protocol},
		CompressionMode: websocket.CompressionDisabled,
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
	if got := conn.Subprotocol(); got != protocol {
		_ = conn.CloseNow()
		return nil, fmt.Errorf("%s: the server speaks %q and not %s, which API servers do since Kubernetes 1.30",
			what, got, protocol)
	}
	conn.SetReadLimit(messageLimit)
	return &socket{conn: conn, messages: make(chan []byte)}, nil
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errSilent = errors.New("the connection is dead: a ping had no answer")

// readMessages passes the messages on to their consumer until the connection or ctx ends. The end of ctx ends the
// connection.
func (s *socket) readMessages(ctx context.Context) {
	defer close(s.messages)
	for {
		_, message, err := s.conn.Read(ctx)
		if err != nil {
			s.err = err
			return
		}
		s.count(activity{read: 1})
		select {
		case s.messages <- message:
			s.count(activity{taken: 1})
		case <-ctx.Done():
			s.err = context.Cause(ctx)
			return
		}
	}
}

// next returns the next message. After the last one, it returns why the messages ended.
func (s *socket) next(ctx context.Context) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	select {
	case message, ok := <-s.messages:
		if !ok {
			return nil, s.err
		}
		return message, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// write sends a message. The end of ctx ends the connection.
func (s *socket) write(ctx context.Context, message []byte) error {
	s.count(activity{written: len(message)})
	return s.conn.Write(ctx, websocket.MessageBinary, message)
}

// count adds the numbers of a to the activity of s. It returns the sum.
func (s *socket) count(a activity) activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.read += a.read
	s.activity.taken += a.taken
	s.activity.written += a.written
	return s.activity
}

// keepAlive pings until ctx ends. It calls end if the connection is dead: a ping has no answer after pingPeriod, and
// nothing on the way can have held the answer up. A message that its consumer has not taken holds up all that follows,
// and input that the command has not read can hold up the ping. Then the next ping decides. An example, where Stdout
// takes nothing from 0:10 to 2:00:
//
//	0:30  a ping is sent, and the next message waits for Stdout
//	1:00  the ping has no answer, and the message waits. A ping is sent. The same happens at 1:30 and at 2:00
//	2:00  Stdout takes the message, and the answers to all pings are read
func (s *socket) keepAlive(ctx context.Context, end func(error)) {
	var pings sync.WaitGroup
	defer pings.Wait()
	ticker := time.NewTicker(pingPeriod)
	defer ticker.Stop()
	var last *ping
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if last != nil && s.isDead(last) {
			end(errSilent)
			return
		}
		sent := &ping{before: s.count(activity{})}
		pings.Go(func() {
			if s.conn.Ping(ctx) == nil {
				s.recordAnswer(sent)
			}
		})
		last = sent
	}
}

// ping is a ping that was sent.
type ping struct {
	// before is the activity before the ping was sent.
	before     activity
	isAnswered bool
}

// recordAnswer records that p was answered. The server has read all that was sent before p.
func (s *socket) recordAnswer(p *ping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.isAnswered = true
	s.activity.answered = max(s.activity.answered, p.before.written)
}

// isDead reports whether p has no answer and nothing can have held the answer up.
func (s *socket) isDead(p *ping) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, before := s.activity, p.before
	isHeldUp := now.read != now.taken || before.read != before.taken || now.read != before.read
	return !p.isAnswered && !isHeldUp && now.written-now.answered <= bulkSize
}
