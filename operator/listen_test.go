package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

// gadgetServer serves one gadget. It answers requests once open is closed.
type gadgetServer struct{ open chan struct{} }

func (s gadgetServer) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	select {
	case <-s.open:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	const object = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"namespace":"default","name":"one","uid":"6b1e6f3c-2d57-4b3b-8a94-0123456789ab","resourceVersion":"7"%s},"spec":{"size":1}}`
	switch r.Verb {
	case wire.VerbList:
		return &wire.Response{Code: 200, Body: fmt.Appendf(nil, `{"metadata":{"resourceVersion":"7"},"items":[`+object+`]}`, "")}, nil
	case wire.VerbWatch:
		text := ""
		if r.Query.Get("sendInitialEvents") == "true" {
			text = `{"type":"ADDED","object":` + fmt.Sprintf(object, "") + `}` + "\n" +
				`{"type":"BOOKMARK","object":` + fmt.Sprintf(object, `,"annotations":{"k8s.io/initial-events-end":"true"}`) + `}` + "\n"
		}
		ctx, cancel := context.WithCancel(ctx)
		return &wire.Response{Code: 200, BodyReader: &quiet{Reader: strings.NewReader(text), ctx: ctx, cancel: cancel}}, nil
	default:
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusConflict,
			Answer: metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}}
	}
}

// quiet is a stream that stays open and silent after its text, until it is closed.
type quiet struct {
	io.Reader
	ctx    context.Context
	cancel context.CancelFunc
}

func (q *quiet) Read(p []byte) (int, error) {
	if n, err := q.Reader.Read(p); err == nil {
		return n, nil
	}
	<-q.ctx.Done()
	return 0, io.EOF
}

func (q *quiet) Close() error { q.cancel(); return nil }

// ask returns the answer of a program that listens.
func ask(t *testing.T, at fmt.Stringer, path string) (code int, text string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + at.String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func anywhere(t *testing.T) net.Listener {
	t.Helper()
	listener, err := feature.Listen(t.Context(), "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// The health of a program during its life: not ready, ready, ending, gone. The reconcile that
// is under way at the end is finished (promise 18).
func TestHealthFromStartToEnd(t *testing.T) {
	t.Parallel()
	listener := anywhere(t)
	server := gadgetServer{open: make(chan struct{})}
	begun, finish := make(chan struct{}), make(chan struct{})
	finished := false
	part := controller.New(func(ctx context.Context, _ *gadget, _ *kube.Client) (controller.Action, error) {
		close(begun)
		<-finish
		finished = ctx.Err() == nil
		return controller.Done(), nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() {
		ended <- runParts(ctx, kube.NewClientFromHandler(server), environment{log: slog.Default(), listeners: listeners{pages: listener}}, []Part{part})
	}()

	eventually(t, func() error {
		code, text := ask(t, listener.Addr(), "/readyz")
		if want := "gadgets.example.com is not synced\n"; code != 503 || text != want {
			return fmt.Errorf("before the list: %d %q", code, text)
		}
		return nil
	})
	if code, _ := ask(t, listener.Addr(), "/healthz"); code != 200 {
		t.Errorf("before the list it is not healthy: %d", code)
	}
	close(server.open)
	<-begun
	if code, text := ask(t, listener.Addr(), "/readyz"); code != 200 || text != "ok\n" {
		t.Errorf("after the list: %d %q", code, text)
	}
	if code, _ := ask(t, listener.Addr(), "/"); code != 404 {
		t.Errorf("there is something at /: %d", code)
	}

	cancel()
	if code, text := ask(t, listener.Addr(), "/readyz"); code != 503 || text != "the program ends\n" {
		t.Errorf("while it ends: %d %q", code, text)
	}
	if code, _ := ask(t, listener.Addr(), "/healthz"); code != 200 {
		t.Errorf("while it ends it is not healthy: %d", code)
	}
	select {
	case err := <-ended:
		t.Fatalf("it did not wait for the reconcile: %v", err)
	default:
	}
	close(finish)
	if err := <-ended; err != nil || !finished {
		t.Errorf("it ended with %v; the reconcile could finish: %t", err, finished)
	}
	// Another program may have its port by now, so the test does not dial it.
	if err := listener.(*net.TCPListener).SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it still listens (%v)", err)
	}
}

func TestMetricsOfAProgram(t *testing.T) {
	t.Parallel()
	listener := anywhere(t)
	server := gadgetServer{open: make(chan struct{})}
	close(server.open)
	part := controller.New(func(ctx context.Context, g *gadget, c *kube.Client) (controller.Action, error) {
		_, err := kube.Namespaced[gadget](c, "default").Replace(ctx, g)
		return controller.Done(), controller.Terminal(err)
	}, controller.Name("gadgets"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- runParts(ctx, kube.NewClientFromHandler(server), environment{log: slog.Default(), listeners: listeners{pages: listener}}, []Part{part})
	}()
	want := []string{
		`yare_reconciles_total{controller="gadgets",result="terminal"} 1`,
		`yare_reconciles_total{controller="gadgets",result="success"} 0`,
		`yare_reconcile_duration_seconds_count{controller="gadgets"} 1`,
		`yare_queue_running{controller="gadgets"} 0`,
		`yare_queue_retries_total{controller="gadgets"} 0`,
		`yare_stream_synced{resource="gadgets.example.com",namespace="",selector="",representation="full"} 1`,
		`yare_stream_watching{resource="gadgets.example.com",namespace="",selector="",representation="full"} 1`,
		`yare_stream_objects{resource="gadgets.example.com",namespace="",selector="",representation="full"} 1`,
		`yare_requests_total{verb="watch",resource="gadgets.example.com",code="200"} 1`,
		`yare_requests_total{verb="update",resource="gadgets.example.com",code="409"} 1`,
		`yare_write_conflicts_total{verb="update",resource="gadgets.example.com"} 1`,
		`# TYPE yare_request_duration_seconds histogram`,
		`# TYPE process_cpu_seconds_total counter`,
	}
	eventually(t, func() error {
		code, text := ask(t, listener.Addr(), "/metrics")
		if code != 200 {
			return fmt.Errorf("status %d", code)
		}
		lines := strings.Split(text, "\n")
		for _, line := range want {
			if !slices.Contains(lines, line) {
				return fmt.Errorf("there is no line %s in:\n%s", line, text)
			}
		}
		if strings.Contains(text, "one") && strings.Contains(text, `"one"`) {
			return errors.New("the name of an object is in a label")
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	resource, err := kube.ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	m := newProgramMetrics(nil)
	for _, each := range []struct {
		request wire.Request
		err     error
	}{
		{wire.Request{Verb: wire.VerbGet}, nil},
		{wire.Request{Verb: wire.VerbGet}, &wire.Error{Err: errors.New("connection refused")}},
		{wire.Request{Verb: wire.VerbList}, context.Canceled},
		{wire.Request{Verb: wire.VerbPatch, Subresource: "status"}, &wire.Error{Code: 422}},
		{wire.Request{Verb: wire.VerbDelete}, &wire.Error{Code: 409}},
	} {
		h := m.requests.handler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
			if each.err != nil {
				return nil, each.err
			}
			return &wire.Response{Code: 200}, nil
		}))
		r := each.request
		r.Resource = resource
		if _, err := h.Do(t.Context(), &r); !errors.Is(err, each.err) {
			t.Errorf("%s: the error became %v", r.Verb, err)
		}
	}
	var text strings.Builder
	if _, err := m.registry.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`yare_requests_total{verb="get",resource="gadgets.example.com",code="200"} 1`,
		`yare_requests_total{verb="get",resource="gadgets.example.com",code="none"} 1`,
		`yare_requests_total{verb="list",resource="gadgets.example.com",code="none"} 1`,
		`yare_requests_total{verb="patch",resource="gadgets.example.com/status",code="422"} 1`,
		`yare_requests_total{verb="delete",resource="gadgets.example.com",code="409"} 1`,
		`yare_write_conflicts_total{verb="delete",resource="gadgets.example.com"} 1`,
		`yare_request_duration_seconds_count{verb="get",resource="gadgets.example.com"} 2`,
	} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("there is no line %s in:\n%s", line, text.String())
		}
	}
}

func TestAddressesThatCannotBeListenedOn(t *testing.T) {
	t.Parallel()
	taken := anywhere(t)
	defer taken.Close()
	part := Watcher[gadget](func(context.Context, *kube.Client) error { t.Error("it was started"); return nil })
	status, _, stderr := call([]string{"--kubeconfig", nowhere(t), "--listen", taken.Addr().String()}, part)
	if status != statusFailed {
		t.Errorf("taken: the status is %d", status)
	}
	checkText(t, "standard error", stderr, []string{"listen on the address that --listen gives", "end that program, or give another port", taken.Addr().String()})
	status, _, stderr = call([]string{"--listen", "8080"}, part)
	if status != statusUsage {
		t.Errorf("not an address: the status is %d", status)
	}
	checkText(t, "standard error", stderr, []string{"8080", "write it as :8080"})
}

// A program whose listener fails ends with an error.
func TestListenerThatFails(t *testing.T) {
	t.Parallel()
	listener := anywhere(t)
	started := make(chan struct{})
	part := part(func(ctx context.Context) error { close(started); <-ctx.Done(); return nil })
	ended := make(chan error)
	go func() {
		ended <- runParts(t.Context(), noServer(), environment{log: slog.Default(), listeners: listeners{pages: listener}}, []Part{part})
	}()
	<-started
	listener.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "serve health and metrics") {
		t.Errorf("it ended with %v", err)
	}
}

type service struct {
	Part
}

func (s service) Needs() (kube.Needs, error) {
	needs, err := s.Part.Needs()
	needs.Service = true
	return needs, err
}

// Services outlive the parts that use them, and the program waits for both.
func TestServicesEndLast(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]error{"a signal": nil, "a failure": errors.New("it went wrong")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var order []string
				note := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, what)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := Run(ctx, noServer(),
					service{part(func(ctx context.Context) error {
						<-ctx.Done()
						note("the service is asked to end")
						time.Sleep(time.Second)
						note("the service has ended")
						return nil
					})},
					part(func(ctx context.Context) error {
						if others == nil {
							<-ctx.Done()
						}
						time.Sleep(time.Second)
						note("the part has ended")
						return others
					}),
				)
				if !errors.Is(err, others) {
					t.Errorf("the error is %v", err)
				}
				want := []string{"the part has ended", "the service is asked to end", "the service has ended"}
				if !slices.Equal(order, want) {
					t.Errorf("the order is %q", order)
				}
			})
		})
	}
}

// A program of which only services are left is done.
func TestServicesDoNotKeepAProgram(t *testing.T) {
	t.Parallel()
	waits := service{part(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })}
	if err := Run(t.Context(), noServer(), waits, part(func(context.Context) error { return nil })); err != nil {
		t.Error(err)
	}
}

// Not parallel: it looks at the goroutines of the process.
func TestListenerLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	listener := anywhere(t)
	server := gadgetServer{open: make(chan struct{})}
	close(server.open)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	part := controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) {
		close(begun)
		return controller.Done(), nil
	})
	ended := make(chan error)
	go func() {
		ended <- runParts(ctx, kube.NewClientFromHandler(server), environment{log: slog.Default(), listeners: listeners{pages: listener}}, []Part{part})
	}()
	<-begun
	// A client that keeps its connection does not delay the end.
	idle, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	ask(t, listener.Addr(), "/metrics")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// A program whose function follows a stream is not ready before the stream has been listed,
// whether by a streaming list or in pages.
func TestReadinessOfFunctions(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"streaming list": true, "pages": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := anywhere(t)
			server := gadgetServer{open: make(chan struct{})}
			client := kube.NewClientFromHandler(server).With(func(next wire.Handler) wire.Handler {
				return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					if !streams && r.Query.Get("sendInitialEvents") == "true" {
						return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusUnprocessableEntity,
							Answer: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid}}
					}
					return next.Do(ctx, r)
				})
			})
			part := Watcher[gadget](func(ctx context.Context, c *kube.Client) error {
				for range watch.Events(ctx, kube.Everywhere[gadget](c), kube.Label("a", "b")) {
				}
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- runParts(ctx, client, environment{log: slog.Default(), listeners: listeners{pages: listener}}, []Part{part})
			}()
			// A function that does not see changes is seen: the gauge had the streams of controllers alone.
			requireWatching := func(want int) {
				t.Helper()
				line := fmt.Sprintf("yare_stream_watching{resource=\"gadgets.example.com\",namespace=\"\",selector=\"a=b\",representation=\"uncached\"} %d\n", want)
				eventually(t, func() error {
					if _, text := ask(t, listener.Addr(), "/metrics"); !strings.Contains(text, line) {
						return fmt.Errorf("the metrics lack %s", line)
					}
					return nil
				})
			}
			for _, want := range []string{"gadgets.example.com with \"a=b\" is not synced\n", "ok\n"} {
				eventually(t, func() error {
					if _, text := ask(t, listener.Addr(), "/readyz"); text != want {
						return fmt.Errorf("the answer is %q, want %q", text, want)
					}
					return nil
				})
				if want != "ok\n" {
					requireWatching(0)
					close(server.open)
				}
			}
			requireWatching(1)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A watch that a function gave up before it was listed held /readyz at 503 for ever. Each
// selector ever followed was kept.
func TestAbandonedWatchesDoNotHoldReadiness(t *testing.T) {
	t.Parallel()
	listener := anywhere(t)
	server := gadgetServer{open: make(chan struct{})} // it never answers
	following, abandoned := make(chan struct{}), make(chan struct{})
	part := Watcher[gadget](func(ctx context.Context, c *kube.Client) error {
		watching, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		for i := range 10 {
			running.Go(func() {
				for range watch.Events(watching, kube.Everywhere[gadget](c), kube.Label("job", fmt.Sprint(i))) {
				}
			})
		}
		<-following
		stop()
		running.Wait()
		close(abandoned)
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- runParts(ctx, kube.NewClientFromHandler(server), environment{log: slog.Default(), listeners: listeners{pages: listener}}, []Part{part})
	}()
	eventually(t, func() error {
		if code, text := ask(t, listener.Addr(), "/readyz"); code != 503 || strings.Count(text, "is not synced\n") != 10 {
			return fmt.Errorf("while they are followed: %d %q", code, text)
		}
		return nil
	})
	close(following)
	<-abandoned
	if code, text := ask(t, listener.Addr(), "/readyz"); code != 200 {
		t.Errorf("after they were given up: %d %q", code, text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The kubelet asks for the health on a port of its own, on which nobody can read the metrics. A flood of connections to
// the metrics does not reach that port.
func TestProbesHaveAPortOfTheirOwn(t *testing.T) {
	t.Parallel()
	open := listeners{pages: anywhere(t), probes: anywhere(t)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- runParts(ctx, noServer(), environment{log: slog.New(slog.DiscardHandler), listeners: open}, []Part{waitingPart{}})
	}()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404} {
		if code, text := ask(t, open.probes.Addr(), path); code != want {
			t.Errorf("%s on the port of the probes: %d, %s", path, code, text)
		}
	}
	if code, _ := ask(t, open.pages.Addr(), "/metrics"); code != 200 {
		t.Errorf("the metrics: %d", code)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// waitingPart is a part that only waits.
type waitingPart struct{}

func (waitingPart) Needs() (kube.Needs, error) { return kube.Needs{}, nil }

func (waitingPart) Start(ctx context.Context, _ *controller.Runtime) error { <-ctx.Done(); return nil }
