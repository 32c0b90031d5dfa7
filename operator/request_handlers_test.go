package operator

import (
	"context"
	"go/ast"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

// silentTracer is a Tracer that records nothing.
type silentTracer struct{}

func (silentTracer) Start(ctx context.Context, _ string, _ ...slog.Attr) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (silentTracer) Inject(context.Context, http.Header) {}

// pageOfPipeline returns the handlers that docs/architecture.md lists, in their order.
func pageOfPipeline(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## The pipeline of requests")
	if !found {
		t.Fatal("docs/architecture.md has no section about the pipeline of requests")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| \\d+ \\| `([^`]+)`").FindAllStringSubmatch(section, -1) {
		names = append(names, row[1])
	}
	return names
}

// callers returns the functions under way from the client of a reconcile down to the transport, in the order
// in which they were called, without the path of the module and without receivers' pointers:
// controller.requestRecorder.Do.
func callers() []string {
	counters := make([]uintptr, 256)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	var functions []string
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, "github.com/yare-go/yare/"); ok {
			name = name[strings.LastIndexByte(name, '/')+1:]
			functions = append(functions, strings.NewReplacer("(*", "", ")", "").Replace(name))
		}
		if !more {
			break
		}
	}
	slices.Reverse(functions)
	return functions
}

// isHandler reports whether a function belongs to a handler of the page. For example, the functions
// kube.retry.Do and kube.NewClient.limitWrites.func4 belong to kube.retry and kube.limitWrites. The compiler may have
// put an exported function into one of another package: operator.addRequestHandlers.RefuseUndeclared.func2 belongs to
// problems.RefuseUndeclared.
func isHandler(function, name string) bool {
	pkg, rest, _ := strings.Cut(name, ".")
	inside, ok := strings.CutPrefix(function, pkg+".")
	isInlined := ast.IsExported(rest) && strings.Contains(function, "."+rest+".func")
	return (ok && strings.Contains("."+inside+".", "."+rest+".") || isInlined) && !strings.HasSuffix(function, "-fm")
}

// TestPipelineIsThatOfThePage compares the handlers passed by an apply of a reconcile, on a client with all
// that a program can have, with the list in docs/architecture.md.
func TestPipelineIsThatOfThePage(t *testing.T) {
	t.Parallel()
	want := pageOfPipeline(t)
	listener := anywhere(t)
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		var passed atomic.Pointer[[]string]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// It stands in the place of the transport.
		transport := func(wire.Handler) wire.Handler {
			return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
				if r.Verb == wire.VerbPatch && r.Resource.Plural == "configmaps" && passed.Load() == nil {
					functions := callers()
					passed.Store(&functions)
					cancel()
				}
				return server.Do(ctx, r)
			})
		}
		fence := lease.NewFence(lease.SystemClock(), lease.DefaultTiming())
		c, err := kube.NewClient(&kube.Config{Host: "https://localhost:1", WrapAttempts: func(next wire.Handler) wire.Handler {
			return fence.Handler(transport(next))
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kube.Everywhere[gadget](server.Client()).Create(t.Context(), &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}); err != nil {
			t.Fatal(err)
		}
		owner := controller.New(func(ctx context.Context, g *gadget, c *kube.Client) (controller.Action, error) {
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}}))
			return controller.Done(), err
		}, controller.Owns[corev1.ConfigMap](), controller.OwnsByLabel[corev1.Secret]("owner"))
		log := slog.New(slog.DiscardHandler)
		env := environment{log: log, listeners: listeners{pages: listener}, tracer: silentTracer{}, problems: problems.NewReporter(log, "", "", kube.Needs{}, nil)}
		brought, err := newRunFeatures(ctx, c, []Part{owner})
		if err != nil {
			t.Fatal(err)
		}
		brought.program.IsStrict = true
		env.features = brought
		if err := runParts(ctx, c, env, []Part{owner}); err != nil {
			t.Fatal(err)
		}
		functions := *passed.Load()
		// The last functions are those of the handler in the place of the transport, with its permanentErrors.
		end := slices.Index(functions, "lease.Fence.sendIfAllowed")
		var got []string
		for _, function := range functions[:end+1] {
			i := slices.IndexFunc(want, func(name string) bool { return isHandler(function, name) })
			switch {
			case i >= 0 && (len(got) == 0 || got[len(got)-1] != want[i]):
				got = append(got, want[i])
			case i < 0 && strings.HasSuffix(function, ".Do") && function != "wire.HandlerFunc.Do" && function != "kube.Client.Do":
				got = append(got, "not on the page: "+function)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the handlers are\n%s\nand those of the page are\n%s\nThe functions are\n%s",
				strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(functions, "\n"))
		}
	})
}
