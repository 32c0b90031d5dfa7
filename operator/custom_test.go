package operator

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// idleParts returns the parts of a program that does nothing.
func idleParts() ([]Part, error) { return []Part{Watcher[gadget](idle)}, nil }

// The parts are made after the flags have been parsed, for crd too.
func TestOwnFlags(t *testing.T) {
	t.Parallel()
	size, wasCalled := 0, false
	p := Program{
		Flags: func(flags *flag.FlagSet) { flags.IntVar(&size, "size", 3, "how large the `SIZE` is") },
		Parts: func() ([]Part, error) {
			wasCalled = true
			if size == 7 {
				return nil, errors.New("7 is too large")
			}
			return idleParts()
		},
	}
	if status, stdout, stderr := callProgram([]string{"crd", "--size", "5"}, p); status != 0 || size != 5 || !strings.Contains(stdout, "gadgets.example.com") {
		t.Errorf("crd: status %d, size %d, %s\n%s", status, size, stderr, stdout)
	}
	for _, args := range []string{"crd --size 7", "--size=7", "run --size=7"} {
		if status, _, stderr := callProgram(strings.Fields(args), p); status != 1 || stderr != "gadgets: 7 is too large\n" {
			t.Errorf("%s: status %d, %s", args, status, stderr)
		}
	}
	_, stdout, _ := callProgram([]string{"--help"}, p)
	checkText(t, "the help", stdout, []string{"operator for Gadget", "--size SIZE", "how large the SIZE is (default 3)", "--kubeconfig FILE"})
	// The help is there also if the parts cannot be made.
	_, stdout, _ = callProgram([]string{"--size", "7", "-h"}, p)
	checkText(t, "the help", stdout, []string{"is a Kubernetes operator.\n", "--size SIZE"})
	wasCalled = false
	if status, _, stderr := callProgram([]string{"--size", "x"}, p); status != 2 || !strings.Contains(stderr, "-size") || wasCalled {
		t.Errorf("a wrong value: status %d, %s", status, stderr)
	}
	if status, stdout, _ := callProgram([]string{"--version", "--size", "7"}, p); status != 0 || wasCalled || !strings.HasPrefix(stdout, "gadgets ") {
		t.Errorf("the version: status %d, %s", status, stdout)
	}
}

func TestFlagsThatAreBuiltIn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kubeconfig", "context", "watch-namespace", "namespace", "listen", "listen-secure", "tls-cert", "tls-key", "leader-elect", "lease-duration", "v", "version", "help", "h"} {
		p := Program{Parts: idleParts, Flags: func(flags *flag.FlagSet) { flags.Bool(name, false, "") }}
		for _, args := range [][]string{nil, {"crd"}} {
			status, stdout, stderr := callProgram(args, p)
			if want := "gadgets: the flag --" + name + " is built in: give the flag of the program another name\n"; status != 1 || stderr != want || stdout != "" {
				t.Errorf("%s %v: status %d, %s", name, args, status, stderr)
			}
		}
	}
}

func TestPartsThatAreMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts func() ([]Part, error)
		want  string
	}{
		"nil":   {nil, "the field Parts of operator.Program is nil"},
		"empty": {func() ([]Part, error) { return nil, nil }, "the program has no parts"},
	} {
		for _, args := range [][]string{nil, {"crd"}} {
			status, _, stderr := callProgram(args, Program{Parts: c.parts})
			if status != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("%s, %v: status %d, %s", name, args, status, stderr)
			}
		}
	}
}

// answers is a RoundTripper that counts requests and knows no resource.
type answers struct{ agents []string }

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.agents = append(a.agents, r.Header.Get("User-Agent")+" for "+r.Header.Get("Impersonate-User"))
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// Config changes how the client of the parts reaches the server.
func TestOwnConfig(t *testing.T) {
	t.Parallel()
	var server answers
	p := Program{
		Parts: func() ([]Part, error) {
			return []Part{Watcher[gadget](func(ctx context.Context, c *kube.Client) error {
				if _, err := kube.Get[gadget](ctx, c, "default", "one"); !kube.IsNoResource(err) {
					return fmt.Errorf("unexpected: %w", err)
				}
				return nil
			})}, nil
		},
		Config: func(config *kube.Config) error {
			config.UserAgent = "mine/1"
			config.Impersonate.UserName = "somebody"
			config.WrapTransport = func(http.RoundTripper) http.RoundTripper { return &server }
			return nil
		},
	}
	kubeconfig := []string{"--kubeconfig", nowhere(t)}
	if status, _, stderr := callProgram(kubeconfig, p); status != 0 || len(server.agents) != 1 || server.agents[0] != "mine/1 for somebody" {
		t.Errorf("status %d, requests %q, %s", status, server.agents, stderr)
	}
	p.Config = func(*kube.Config) error { return errors.New("there is no vault") }
	status, _, stderr := callProgram(kubeconfig, p)
	if first, rest, _ := strings.Cut(stderr, "\n"); status != 1 || !strings.Contains(first, `"starting"`) || rest != "gadgets: there is no vault\n" {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// The log of the program, of its author and of libraries goes to the handler of the author.
func TestOwnLog(t *testing.T) {
	t.Parallel()
	var text sharedBuffer
	p := Program{
		Log: slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}),
		Parts: func() ([]Part, error) {
			return []Part{Watcher[gadget](func(ctx context.Context, c *kube.Client) error {
				_, err := kube.Get[gadget](ctx, c, "default", "one")
				return err
			})}, nil
		},
	}
	status, _, stderr := callProgram([]string{"--kubeconfig", nowhere(t)}, p)
	if status != 1 || !strings.Contains(text.String(), "the server cannot be reached") || strings.Contains(stderr, "will try again") {
		t.Errorf("status %d, logged %s\n%s", status, text.String(), stderr)
	}
}

// tracedRequests records the names of spans.
type tracedRequests struct{ names []string }

func (r *tracedRequests) Start(ctx context.Context, name string, _ ...slog.Attr) (context.Context, func(error)) {
	return ctx, func(error) { r.names = append(r.names, name) }
}

func (r *tracedRequests) Inject(context.Context, http.Header) {}

// The tracer of a program sees its requests.
func TestOwnTracer(t *testing.T) {
	t.Parallel()
	var traced tracedRequests
	p := Program{Tracer: &traced, Log: slog.DiscardHandler, Parts: func() ([]Part, error) {
		return []Part{Task("ask", func(ctx context.Context, rt *controller.Runtime) error {
			_, err := kube.Get[gadget](ctx, rt.Client, "default", "one")
			if rt.Tracer != &traced || err == nil {
				t.Errorf("the tracer is %v, %v", rt.Tracer, err)
			}
			return nil
		})}, nil
	}}
	if status, _, stderr := callProgram([]string{"--kubeconfig", nowhere(t)}, p); status != 0 || len(traced.names) != 1 || traced.names[0] != "get gadgets.example.com" {
		t.Errorf("status %d, spans %q, %s", status, traced.names, stderr)
	}
}

// serveOwn runs a program with handlers and metrics until the test ends. Its server has nothing.
func serveOwn(t *testing.T, log io.Writer, handlers func(*controller.Runtime) map[string]http.Handler, metrics func(io.Writer)) fmt.Stringer {
	t.Helper()
	listener := anywhere(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	env := environment{log: slog.New(slog.NewTextHandler(log, nil)), listeners: listeners{pages: listener}, ownHandlers: handlers, ownMetrics: metrics}
	go func() { ended <- runParts(ctx, noServer(), env, []Part{Watcher[gadget](idle)}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr()
}

func TestOwnPages(t *testing.T) {
	t.Parallel()
	var log sharedBuffer
	at := serveOwn(t, &log, func(rt *controller.Runtime) map[string]http.Handler {
		return map[string]http.Handler{
			"GET /gadgets/{name}": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := kube.Get[gadget](r.Context(), rt.Client, "default", r.PathValue("name"))
				fmt.Fprint(w, err)
			}),
			"/broken": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at the disco") }),
		}
	}, func(w io.Writer) { fmt.Fprintln(w, "gadgets_total 7") })
	if code, text := ask(t, at, "/gadgets/one"); code != 200 || text != "there is no server" {
		t.Errorf("the handler: %d %s", code, text)
	}
	if code, text := ask(t, at, "/metrics"); code != 200 || !strings.Contains(text, "\ngadgets_total 7\n") || !strings.Contains(text, "yare_build_info") {
		t.Errorf("the metrics: %d %s", code, text)
	}
	if code, _ := ask(t, at, "/healthz"); code != 200 {
		t.Errorf("the health: %d", code)
	}
	if response, err := http.Get("http://" + at.String() + "/broken"); err == nil {
		response.Body.Close()
		t.Errorf("the broken handler has answered: %s", response.Status)
	}
	checkText(t, "the log", log.String(), []string{"level=ERROR", "the handler of /broken panicked", "at the disco", "custom_test.go"})
}

// A panic of the author's metrics leaves the metrics of the program.
func TestOwnMetricsThatPanic(t *testing.T) {
	t.Parallel()
	var log sharedBuffer
	at := serveOwn(t, &log, nil, func(w io.Writer) {
		fmt.Fprint(w, "half_a_li")
		panic("at the disco")
	})
	if code, text := ask(t, at, "/metrics"); code != 200 || strings.Contains(text, "half") || !strings.Contains(text, "yare_build_info") {
		t.Errorf("the metrics: %d %s", code, text)
	}
	checkText(t, "the log", log.String(), []string{"level=ERROR", "the metrics of the program panicked", "at the disco"})
}

func TestPatternsThatAreWrong(t *testing.T) {
	t.Parallel()
	ok := http.NotFoundHandler()
	for pattern, c := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"/metrics":               {ok, `the pattern "/metrics" is that of a built-in page`},
		"POST /healthz":          {ok, "is that of a built-in page"},
		"GET example.com/readyz": {ok, "is that of a built-in page"},
		"HEAD /{page}":           {ok, `the field Handlers of operator.Program: the pattern "HEAD /{page}": `},
		"GET":                    {ok, `the pattern "GET"`},
		"/nil":                   {nil, `the handler of the pattern "/nil" is nil`},
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := callProgram([]string{"--kubeconfig", nowhere(t)}, Program{
				Parts:    idleParts,
				Handlers: func(*controller.Runtime) map[string]http.Handler { return map[string]http.Handler{pattern: c.handler} },
			})
			if status != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, %s", status, stderr)
			}
		})
	}
}

func TestHandlersWithoutListener(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	env := environment{
		log: slog.New(slog.NewTextHandler(&log, nil)),
		ownHandlers: func(*controller.Runtime) map[string]http.Handler {
			return map[string]http.Handler{"/": http.NotFoundHandler()}
		},
	}
	done := Watcher[gadget](func(context.Context, *kube.Client) error { return nil })
	if err := runParts(t.Context(), noServer(), env, []Part{done}); err != nil || !strings.Contains(log.String(), "give --listen") {
		t.Errorf("%v, logged %s", err, log.String())
	}
}

// BeforeRun is called by run alone, once and before the parts start. A flag that it misses breaks no other command.
func TestBeforeRun(t *testing.T) {
	t.Parallel()
	var calls, starts int
	bucket := ""
	p := Program{
		Flags: func(flags *flag.FlagSet) { flags.StringVar(&bucket, "bucket", "", "where backups go") },
		Parts: func() ([]Part, error) {
			return []Part{Watcher[gadget](idle), Task("start", func(context.Context, *controller.Runtime) error {
				if starts++; calls != 1 {
					t.Errorf("a part starts after %d calls", calls)
				}
				return errors.New("started")
			})}, nil
		},
		BeforeRun: func(context.Context) error {
			if calls++; bucket == "" {
				return errors.New("--bucket is missing")
			}
			return nil
		},
	}
	for _, command := range []string{"crd", "permissions", "manifests --image=i:1", "version", "help"} {
		if status, _, stderr := callProgram(strings.Fields(command), p); status != 0 || calls != 0 {
			t.Errorf("%s: status %d, %d calls, %s", command, status, calls, stderr)
		}
	}
	if status, _, stderr := callProgram([]string{"--kubeconfig", "/no/ne"}, p); status != 1 || calls != 1 || starts != 0 || !strings.Contains(stderr, "--bucket is missing") {
		t.Errorf("run without the flag: status %d, %d calls, %d starts, %s", status, calls, starts, stderr)
	}
	calls = 0
	if status, _, stderr := callProgram([]string{"run", "--bucket=b", "--kubeconfig", nowhere(t)}, p); status != 1 || calls != 1 || starts != 1 || !strings.Contains(stderr, "started") {
		t.Errorf("run with the flag: status %d, %d calls, %d starts, %s", status, calls, starts, stderr)
	}
}
