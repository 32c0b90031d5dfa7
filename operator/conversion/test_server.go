package conversion

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/conversion/internal/crdpublishing"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/calls/serving"
)

// testServer serves the conversions of all programs in the process of a test, until their cluster ends. A
// kind has one conversion in a cluster, and a test goes on after its program, so no program can serve the conversions.
type testServer struct {
	url    string
	bundle []byte
	server *serving.Server

	mu sync.Mutex
	// handlers holds, by the path of each kind, the handler of the program that was started last.
	handlers map[string]http.Handler
}

type testServerKey struct{}

// newTestServer opens an address of this machine, for an API server on the same machine.
func newTestServer(ctx context.Context, log *slog.Logger) (*testServer, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for calls that convert objects: %w", err)
	}
	certificate, bundle, err := certificates.InMemory(certificates.LoopbackNames())
	if err != nil {
		_ = listener.Close() // it has no calls yet
		return nil, err
	}
	s := &testServer{
		url: "https://" + listener.Addr().String(), bundle: bundle, handlers: make(map[string]http.Handler),
	}
	s.server = serving.Serve(listener, s, serving.Options{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
		Log:            log,
		Fail:           func(err error) { log.Error("the conversions of this test are not served any more", "error", err) },
	})
	return s, nil
}

// ServeHTTP answers a call.
func (s *testServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.handlers[r.URL.Path]
	s.mu.Unlock()
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	handler.ServeHTTP(w, r)
}

// Close ends the server.
func (s *testServer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), calls.LastCallTime)
	defer cancel()
	s.server.Close(ctx)
	return nil
}

// sharedTestServer returns the server of the cluster of a program.
func sharedTestServer(ctx context.Context) (*testServer, error) {
	shared := programctx.SharedFrom(ctx)
	if shared == nil {
		shared = new(programctx.Shared)
		context.AfterFunc(ctx, func() { _ = shared.Close() }) // it has no error
	}
	v, err := shared.LoadOrMake(testServerKey{}, func() (io.Closer, error) {
		// The server lives longer than the program and its test.
		return newTestServer(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	})
	if err != nil {
		return nil, err
	}
	s, ok := v.(*testServer)
	if !ok {
		return nil, fmt.Errorf("the conversions of this test are a %T", v)
	}
	return s, nil
}

// addHandler makes handler answer the calls to paths.
func (s *testServer) addHandler(handler http.Handler, paths map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range paths {
		s.handlers[path] = handler
	}
}

// publish publishes the conversions of a program, and serves them. A kind is served once the schemas of the cluster are
// known: the API server may keep what it has converted before that, and answer with it until the object changes.
func (s *testServer) publish(
	ctx context.Context, client *kube.Client, all *handler, log *slog.Logger,
) error {
	use, paths := all.useSchemasAfter(0), all.paths()
	p, err := crdpublishing.New(crdpublishing.Config{
		Paths: all.paths(), Target: configuration.Target{URL: s.url}, Log: log,
		BundleFor: func([]byte) []byte { return s.bundle }, Changed: func() <-chan struct{} { return nil },
		Client: client.WithFieldManager(conversionManager(client)),
		UseSchemas: func(definition string, schemas map[string]*crd.Schema) {
			use(definition, schemas)
			s.addHandler(all.converter, map[string]string{definition: paths[definition]})
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	for _, k := range all.kinds {
		if err := publishOnce(ctx, p, client, k); err != nil {
			return err
		}
	}
	s.addHandler(all.converter, paths) // also the kinds that the test has not defined yet
	return nil
}

// publishOnce publishes the conversion of a kind, and returns when the API server converts by it. The API server then
// ends the watches of the kind, because it serves the kind with the new conversion.
func publishOnce(ctx context.Context, p *crdpublishing.Publisher, client *kube.Client, k *convert.Kind) error {
	watch := wire.Stream{Resource: storageVersion(k).Resource}
	stream, err := client.Do(ctx, watch.Request(wire.VerbWatch))
	if kube.IsNotFound(err) {
		return nil // the test has not defined the kind
	}
	if err != nil {
		// The server cannot read the objects if the published conversion is that of a program that has ended.
		return publishUnwatchable(ctx, p, client, watch)
	}
	defer func() { _ = stream.BodyReader.Close() }() // the watch is not needed any more
	isChanged, err := p.Publish(ctx, watch.Resource.String())
	if err != nil || !isChanged {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, stream.BodyReader) // an error ends the watch too
	}()
	select {
	case <-ended:
	case <-time.After(watchEndTime):
		_ = stream.BodyReader.Close() // it ends the copy
		<-ended
	}
	return nil
}

// publishUnwatchable publishes the conversion of a kind whose watch the API server refuses, and returns when the API
// server accepts the watch. The API server refuses a watch after the end of a program, if objects are stored in another
// version than that of the watch.
func publishUnwatchable(ctx context.Context, p *crdpublishing.Publisher, client *kube.Client, watch wire.Stream) error {
	if _, err := p.Publish(ctx, watch.Resource.String()); err != nil {
		return err
	}
	for {
		stream, err := client.Do(ctx, watch.Request(wire.VerbWatch))
		if err == nil {
			return stream.BodyReader.Close()
		}
		select {
		case <-time.After(calls.ProbeInterval):
		case <-ctx.Done():
			return fmt.Errorf("watch %s, to see when its conversion is used: %w", watch.Resource, err)
		}
	}
}

// watchEndTime is how long an API server takes at most to end the watches of a kind whose conversion has changed. Later
// it uses the conversion, too.
const watchEndTime = 5 * time.Second
