package operator

import (
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
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// fakeFeature is a feature that writes down how it is called. It stands in the place of the live page, with its flag.
type fakeFeature struct {
	program *feature.Program
	isOn    bool
	calls   *[]string
	// err is the error of Start.
	err error
}

// fakePart brings a fakeFeature.
type fakePart struct{ feature *fakeFeature }

func (fakePart) Needs() (kube.Needs, error)                       { return kube.Needs{Service: true}, nil }
func (fakePart) Start(context.Context, *controller.Runtime) error { return nil }
func (p fakePart) Feature() feature.Feature                       { return p.feature }

func (f *fakeFeature) record(call string) { *f.calls = append(*f.calls, call) }

func (f *fakeFeature) Declare(p *feature.Program) feature.Declaration {
	f.program = p
	return feature.Declaration{
		Package: "operator/livepage",
		Flags:   []feature.Flag{{Name: "live-page", Set: feature.SetBool(&f.isOn), Help: "does what a fake does"}},
		Check: func() ([]kube.Access, error) {
			if f.isOn && f.program.Pages.Address == "" && !f.program.Pages.IsChecked {
				return nil, errors.New("--live-page of the fake needs an address")
			}
			return []kube.Access{{Resource: wire.Resource{Plural: "fakes"}, Verbs: []wire.Verb{wire.VerbGet}}}, nil
		},
	}
}

func (f *fakeFeature) Install(p *feature.Plan) error {
	if f.isOn {
		return errors.New("the fake cannot be installed")
	}
	p.Args = append(p.Args, "--watch-namespace=fake")
	p.Access = append(p.Access, kube.Access{Resource: wire.Resource{Plural: "idols"}, Verbs: []wire.Verb{wire.VerbGet}})
	p.TLSSecret = "fake-secret"
	return nil
}

func (f *fakeFeature) Observe(next controller.Observer) controller.Observer {
	f.record("observe")
	return next
}

func (f *fakeFeature) Start(_ context.Context, h *feature.Host) error {
	f.record("start")
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page of "+f.program.Name) })
	return errors.Join(f.err, h.AddPage("GET /fake", page))
}

func (f *fakeFeature) UnreadyReasons() []string { return []string{"the fake is not ready"} }

func (f *fakeFeature) End() { f.record("end") }

// A feature has its flag in the help, gets the value of the flag, and decides with it about the command line and the installation.
// A program without the feature refuses the flag, and names the import.
func TestFlagsOfFeatures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   string
		isWith bool
		status int
		want   string
	}{
		{"--help", true, 0, "--live-page         does what a fake does"},
		{"--live-page", true, 2, "--live-page of the fake needs an address"},
		{"permissions --live-page --listen :1", true, 0, "  - fakes\n"},
		{"permissions --live-page=x --listen :1", true, 2, `invalid value "x" for flag -live-page: "x" is neither true nor false`},
		{"crd --live-page", true, 2, "-live-page"},
		{"manifests --image i:1", true, 0, "  - idols\n"},
		{"manifests --image i:1", true, 0, "--watch-namespace=fake\n"},
		{"manifests --image i:1", true, 0, "secretName: fake-secret\n"},
		{"manifests --image i:1 --live-page --listen :8080", true, 1, "the fake cannot be installed"},
		{"permissions --live-page --listen :1", false, 1, "import github.com/yare-go/yare/operator/livepage and add livepage.New() to its parts"},
	} {
		parts := []Part{Watcher[gadget](idle)}
		if test.isWith {
			parts = append(parts, OnEveryReplica(fakePart{&fakeFeature{calls: new([]string)}}))
		}
		status, stdout, stderr := call(strings.Fields(test.args), parts...)
		if status != test.status || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%s with the feature %t: status %d, %s%s, want %d with %q", test.args, test.isWith, status, stdout, stderr, test.status, test.want)
		}
	}
	flags := Program{
		Flags: func(flags *flag.FlagSet) { flags.Bool("live-page", false, "") },
		Parts: func() ([]Part, error) { return []Part{Watcher[gadget](idle)}, nil },
	}
	if status, _, stderr := callProgram([]string{"crd"}, flags); status != 1 || !strings.Contains(stderr, "the flag --live-page is built in") {
		t.Errorf("a program with a flag of the same name: status %d, %s", status, stderr)
	}
}

// A feature observes the reconciles, starts before the parts, adds a page, can hold the readiness, and ends after everything else.
func TestFeatureFromStartToEnd(t *testing.T) {
	t.Parallel()
	var calls []string
	fake := &fakeFeature{calls: &calls}
	listener := anywhere(t)
	ctx, cancel := context.WithCancel(t.Context())
	task := Task("look", func(context.Context, *controller.Runtime) error {
		defer cancel()
		for path, want := range map[string]string{"/fake": "the page of gadgets", "/readyz": "the fake is not ready\n"} {
			if _, text := ask(t, listener.Addr(), path); text != want {
				return fmt.Errorf("%s has the text %q", path, text)
			}
		}
		fake.record("task")
		return nil
	})
	parts := []Part{task, fakePart{fake}, fakePart{fake}}
	client := kube.NewClientFromHandler(gadgetServer{}).WithFieldManager("gadgets")
	env := environment{log: slog.New(slog.DiscardHandler), listeners: listeners{pages: listener}}
	if err := runParts(ctx, client, env, parts); err != nil {
		t.Error(err)
	}
	if got := strings.Join(calls, ", "); got != "observe, start, task, end" {
		t.Errorf("the calls are %s", got)
	}
	calls, fake.err = nil, errors.New("the fake does not start")
	env.listeners = listeners{}
	if err := runParts(t.Context(), client, env, parts); !errors.Is(err, fake.err) {
		t.Errorf("a feature that does not start: %v", err)
	}
	if got := strings.Join(calls, ", "); got != "observe, start, end" {
		t.Errorf("the calls are %s", got)
	}
}
