package configpublishing_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/internal/calls/configpublishing"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/webhook"
)

type (
	crateSpec struct {
		Replicas int32 `json:"replicas,omitempty"`
	}
	crateStatus struct {
		Replicas int32 `json:"replicas,omitempty"`
	}
	crate   = kube.CustomResource[crateSpec, crateStatus]
	boxSpec struct{}
	box     = kube.CustomResource[boxSpec, kube.None]

	validating = admissionv1.ValidatingWebhookConfiguration
	mutating   = admissionv1.MutatingWebhookConfiguration
)

func (crateSpec) Definition() kube.Definition {
	return kube.Definition{Group: "publish.example.com", Version: "v1", Kind: "Crate", Scale: &kube.ScalePaths{}}
}

func (boxSpec) Definition() kube.Definition {
	return kube.Definition{Group: "publish.example.com", Version: "v1", Kind: "Box"}
}

const (
	crateEntry   = "validate.crates.publish.example.com"
	scaleEntry   = "scale.validate.crates.publish.example.com"
	boxEntry     = "validate.boxes.publish.example.com"
	defaultEntry = "default.boxes.publish.example.com"
)

func crateValidator() operator.Part {
	return webhook.Validate(func(context.Context, *crate, *crate, *kube.Client) error { return nil })
}

func boxValidator() operator.Part {
	return webhook.Validate(func(context.Context, *box, *box, *kube.Client) error { return nil })
}

func boxDefaulter() operator.Part { return webhook.Default(func(context.Context, *box) {}) }

// entriesOf returns the entries of webhooks.
func entriesOf(t testing.TB, target configuration.Target, webhooks []operator.Part) (validating, mutating []*configuration.Entry) {
	t.Helper()
	if len(webhooks) == 0 {
		return nil, nil
	}
	program := &feature.Program{}
	for _, each := range webhooks {
		program.Parts = append(program.Parts, each)
	}
	h, err := webhooks[0].(calls.Source).NewHandler(program)
	if err != nil {
		t.Fatal(err)
	}
	if validating, mutating, err = h.(calls.EntryMaker).Entries(target); err != nil {
		t.Fatal(err)
	}
	return validating, mutating
}

// world is an API server with an installation in a namespace.
type world struct {
	t testing.TB
	// client is that of an administrator.
	client          *kube.Client
	name, namespace string
}

// bundles has the bundle of a replica.
type bundles struct {
	mu      sync.Mutex
	own     []byte
	changed chan struct{}
}

func (b *bundles) set(own string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = []byte(own)
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *bundles) bundleFor(published []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.own) > 0 && bytes.Contains(published, b.own) { // others may know more
		return published
	}
	return b.own
}

func (b *bundles) changes() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// replica is a Publisher that runs.
type replica struct {
	*configpublishing.Publisher
	bundles *bundles
	// leads is what the Config reports.
	leads   atomic.Bool
	elected chan struct{}
	// writes counts the writes that the server has been asked for.
	writes atomic.Int64
	log    logBuffer
	stop   func()
}

// elect makes the replica the leader.
func (r *replica) elect() {
	r.leads.Store(true)
	close(r.elected)
}

// countWrites returns a handler that counts the writes that pass.
func (r *replica) countWrites(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, request *wire.Request) (*wire.Response, error) {
		if request.Verb.IsWrite() {
			r.writes.Add(1)
		}
		return next.Do(ctx, request)
	})
}

// newReplica returns a replica with a bundle that does not run yet. edit, which may be nil, changes its Config.
func (w *world) newReplica(client *kube.Client, bundle string, edit func(*configpublishing.Config), webhooks ...operator.Part) *replica {
	w.t.Helper()
	r := &replica{bundles: &bundles{own: []byte(bundle), changed: make(chan struct{})}, elected: make(chan struct{})}
	client = client.WithFieldManager("web").With(r.countWrites)
	c := configpublishing.Config{
		Name: w.name, Labels: map[string]string{"app.kubernetes.io/name": "web"}, Namespace: w.namespace, Deployment: "web",
		Target:    configuration.Target{ServiceNamespace: w.namespace, ServiceName: "web"},
		BundleFor: r.bundles.bundleFor, Changed: r.bundles.changes,
		Leader: client, Replica: client, Leads: r.leads.Load, Elected: r.elected,
		Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	if edit != nil {
		edit(&c)
	}
	c.Validating, c.Mutating = entriesOf(w.t, c.Target, webhooks)
	p, err := configpublishing.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Publisher = p
	return r
}

// run runs the replica until its stop is called, or until the test ends.
func (r *replica) run(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	r.stop = func() { cancel(); running.Wait() }
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
}

// start starts a replica that does not lead.
func (w *world) start(bundle string, webhooks ...operator.Part) *replica {
	w.t.Helper()
	r := w.newReplica(w.client, bundle, nil, webhooks...)
	r.run(w.t)
	return r
}

// startLeader starts a replica that leads.
func (w *world) startLeader(bundle string, webhooks ...operator.Part) *replica {
	w.t.Helper()
	r := w.newReplica(w.client, bundle, nil, webhooks...)
	r.elect()
	r.run(w.t)
	return r
}

// state returns the entries of both configurations as NAME=BUNDLE, with a question mark for a configuration that is missing.
func (w *world) state() string {
	w.t.Helper()
	var all []string
	v, err := kube.Everywhere[validating](w.client).Get(context.Background(), w.name)
	switch {
	case kube.IsNotFound(err):
		all = append(all, "?")
	case err != nil:
		w.t.Fatal(err)
	default:
		for _, e := range v.Webhooks {
			all = append(all, e.Name+"="+string(e.ClientConfig.CABundle))
		}
	}
	all = append(all, "|")
	m, err := kube.Everywhere[mutating](w.client).Get(context.Background(), w.name)
	switch {
	case kube.IsNotFound(err):
		all = append(all, "?")
	case err != nil:
		w.t.Fatal(err)
	default:
		for _, e := range m.Webhooks {
			all = append(all, e.Name+"="+string(e.ClientConfig.CABundle))
		}
	}
	return strings.Join(all, " ")
}

// checkState returns an error if the state is another one.
func (w *world) checkState(want string) error {
	w.t.Helper()
	if got := w.state(); got != want {
		return fmt.Errorf("the entries are\n%s\nand should be\n%s", got, want)
	}
	return nil
}

// get returns the configuration of validators.
func (w *world) get() *validating {
	w.t.Helper()
	v, err := kube.Everywhere[validating](w.client).Get(context.Background(), w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// edit changes the configuration of validators, as somebody else.
func (w *world) edit(change func(*validating)) {
	w.t.Helper()
	if _, err := kube.Everywhere[validating](w.client.WithFieldManager("somebody")).Modify(context.Background(), w.name,
		func(v *validating) error { change(v); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
