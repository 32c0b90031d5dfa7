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

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// fakeFeature is a feature that writes down how it is called. It stands in the place of the live page, with its flag.
type fakeFeature struct {
	program *feature.Program
	isOn    bool
	calls   *[]string
	// err is the error of Start, and partErr is that of Declare.
	err, partErr error
}

// fakePart brings a fakeFeature.
type fakePart struct{ feature *fakeFeature }

func (fakePart) Needs() (kube.Needs, error)                       { return kube.Needs{Service: true}, nil }
func (fakePart) Start(context.Context, *controller.Runtime) error { return nil }
func (fakePart) FeatureName() string                              { return "fake" }
func (p fakePart) NewFeature() feature.Feature                    { return p.feature }

func (f *fakeFeature) record(call string) { *f.calls = append(*f.calls, call) }

func (f *fakeFeature) Declare(p *feature.Program) (feature.Declaration, error) {
	f.program = p
	return feature.Declaration{
		Flags: []feature.Flag{{Name: "live-page", Set: feature.SetBool(&f.isOn), Help: "does what a fake does"}},
		Commands: []feature.Command{{Name: "migrate", Help: "does nothing", Run: func(_ context.Context, c *feature.CommandRun) error {
			fmt.Fprintf(c.Out, "the command ran in %s for %s, dry %t\n", c.Namespace, c.Name, c.IsDryRun)
			return nil
		}}},
		Converted: []schema.GroupKind{{Group: "fake.example.com", Kind: "Fake"}},
		Check: func() ([]kube.Access, error) {
			if f.isOn && f.program.Pages.Address == "" && !f.program.Pages.IsChecked {
				return nil, errors.New("--live-page of the fake needs an address")
			}
			return []kube.Access{{Resource: wire.Resource{Plural: "fakes"}, Verbs: []wire.Verb{wire.VerbGet}}}, nil
		},
	}, f.partErr
}

func (f *fakeFeature) Install(p *feature.Plan) error {
	if f.isOn {
		return errors.New("the fake cannot be installed")
	}
	p.Args = append(p.Args, "--watch-namespace=fake")
	p.Access = append(p.Access, kube.Access{Resource: wire.Resource{Plural: "idols"}, Verbs: []wire.Verb{wire.VerbGet}})
	p.TLSSecret, p.IsCalled, p.Notes = "fake-secret", true, []string{"this is a fake"}
	p.Edits = append(p.Edits, func(objects []map[string]any) ([]map[string]any, error) {
		return append(objects, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "of-the-fake"}}), nil
	})
	return nil
}

func (f *fakeFeature) CheckDefinitions(context.Context, *kube.Client, []*crd.CustomResourceDefinition) error {
	f.record("check definitions")
	return nil
}

func (f *fakeFeature) CheckObjects(_ context.Context, _ *kube.Client, printNote func(string)) error {
	f.record("check objects")
	printNote("the fake has looked")
	return nil
}

func (f *fakeFeature) ResourcesBefore() []wire.Resource { return []wire.Resource{{Plural: "fakes"}} }

func (f *fakeFeature) SecretsAfter(name string) []string { return []string{name + "-fake"} }

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
		{"manifests --image i:1", true, 0, "  name: of-the-fake\n"},
		{"manifests --image i:1", true, 0, "- name: YARE_INSTALLATION\n"},
		{"manifests --image i:1", true, 0, "gadgets: this is a fake\n"},
		{"manifests --image i:1 --live-page --listen :8080", true, 1, "the fake cannot be installed"},
		{"--help", true, 0, "gadgets migrate       does nothing"},
		{"--help", false, 0, "Flags of uninstall:"},
		{"migrate --dry-run --kubeconfig NOWHERE", true, 0, "the command ran in gadgets-system for gadgets, dry true"},
		{"migrate --listen :1", true, 2, "-listen"},
		{"migrate", false, 1, "no part of the program has the command migrate: import github.com/yare-go/yare/operator/conversion and add conversion.Between to the parts"},
		{"permissions --live-page --listen :1", false, 1, "import github.com/yare-go/yare/operator/livepage and add livepage.New() to the parts"},
		// A flag that asks for protection is never only a warning. One that several programs share may be.
		{"permissions --webhook-cert /c --webhook-key /k", false, 1, "no part of the program has the flag --webhook-cert: import github.com/yare-go/yare/operator/webhook"},
		{"permissions --webhooks :1", false, 0, "gadgets"},
	} {
		parts := []Part{Watcher[gadget](idle)}
		if test.isWith {
			parts = append(parts, OnEveryReplica(fakePart{&fakeFeature{calls: new([]string)}}))
		}
		status, stdout, stderr := call(strings.Fields(strings.ReplaceAll(test.args, "NOWHERE", nowhere(t))), parts...)
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

// What a feature finds wrong with its parts is an error of every command, and of [Run].
func TestPartsThatAFeatureRefuses(t *testing.T) {
	t.Parallel()
	parts := []Part{Watcher[gadget](idle), fakePart{&fakeFeature{partErr: errors.New("the fake is declared badly")}}}
	status, _, stderr := call([]string{"crd"}, parts...)
	if err := Run(t.Context(), noServer(), parts...); status != 1 || !strings.Contains(stderr, "declared badly") || err == nil {
		t.Errorf("status %d, %s; Run: %v", status, stderr, err)
	}
}

// The features look at an installation with --check, and name what uninstall has to remove besides what has labels.
func TestFeaturesLookAtInstallations(t *testing.T) {
	t.Parallel()
	fake := &fakeFeature{calls: new([]string)}
	brought, err := newFeatures([]Part{fakePart{fake}}, kube.Needs{}, new(feature.Program))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	printNote := func(text string) { notes = append(notes, text) }
	if err := errors.Join(brought.checkDefinitions(t.Context(), nil, nil), brought.checkObjects(t.Context(), nil, printNote)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(*fake.calls, ", "); got != "check definitions, check objects" || strings.Join(notes, "") != "the fake has looked" {
		t.Errorf("the calls are %s, the notes %q", got, notes)
	}
	before, after := brought.uninstall("gadgets")
	if len(before) != 1 || before[0].Plural != "fakes" || strings.Join(after, "") != "gadgets-fake" {
		t.Errorf("before the Deployment go %v, after it %q", before, after)
	}
	if !brought.converted()[schema.GroupKind{Group: "fake.example.com", Kind: "Fake"}] {
		t.Error("the kind of the fake is not converted")
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
