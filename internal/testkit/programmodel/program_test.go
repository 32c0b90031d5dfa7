package programmodel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

// Alpha and Beta own children. A Waiter waits for the child of the Waiter before it.

type alphaSpec struct {
	Size int `json:"size"`
}

type betaSpec struct {
	Size int `json:"size"`
}

type waiterSpec struct {
	Size int `json:"size"`
}

// gammaSpec is of a kind that the program cannot read: see brokenKind.
type gammaSpec struct {
	Size int `json:"size"`
}

type childSpec struct {
	Height int `json:"height"`
}

type status struct {
	Size int `json:"size,omitempty"`
}

const group = "model.example.com"

func (alphaSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Alpha", Plural: "alphas"}
}

func (betaSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Beta", Plural: "betas"}
}

func (waiterSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Waiter", Plural: "waiters"}
}

func (gammaSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Gamma", Plural: "gammas"}
}

func (childSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Child", Plural: "children"}
}

func (s alphaSpec) size() int  { return s.Size }
func (s betaSpec) size() int   { return s.Size }
func (s waiterSpec) size() int { return s.Size }
func (s gammaSpec) size() int  { return s.Size }

type spec interface {
	kube.Defined
	size() int
}

type (
	parent[S spec] = kube.CustomResource[S, status]
	child          = kube.CustomResource[childSpec, kube.None]
)

const (
	finalizer = "model.example.com/cleanup"
	// sizeLabel is where the desired state is, for controllers that look at labels only.
	sizeLabel = "size"
	// resync is long compared with the time in which everything must have been repaired.
	resync = 7 * time.Minute
)

// source is which stream of children a controller follows.
type source int

const (
	ownsAll source = iota
	ownsByController
	ownsByTier
	watchesMetadata
	sources
	// ownsFirst follows the child of the first parent of each namespace only, by a field selector.
	ownsFirst
)

// predicate is which changes of the own kind matter to a controller.
type predicate int

const (
	everyChange predicate = iota
	labelsChanged
	generationChanged
	predicates
)

// plan describes a controller.
type plan struct {
	name      string
	plural    string
	source    source
	predicate predicate
	// narrow is true if the controller sees the namespaces by streams of their own.
	narrow    bool
	finalizer bool
	resync    bool
	// reads, lists and readsMetadata are the reads of a reconcile before it writes.
	reads, lists, readsMetadata bool
	// slow is true if reconciles take time.
	slow        bool
	concurrency int
	waits       bool
	triggers    chan controller.Trigger
	selects     bool
	byLabel     bool
	quiet       time.Duration
	retires     bool
	// skipsStatus is true with controller.SkipOwnStatus.
	skipsStatus bool
	// ifServed is true if the kind of the children may be absent.
	ifServed bool
	// shares is true if the parents of a namespace have one more child by label, which only one of them can have.
	shares bool
	// prunes is true if each reconcile deletes an object between the pages of a live list.
	prunes bool
	// program is the number of the program that the controller belongs to.
	program int
}

const (
	// ownerLabel is the label of owners by label.
	ownerLabel = "owner"
	// sharedPrefix begins the names of children that the parents of a namespace share.
	sharedPrefix = "shared-"
)

// watcher returns the name under which the world records what the controller is shown.
func (p *plan) watcher() string { return p.name + strconv.Itoa(p.program) }

// follows reports whether the controller follows the child of a parent.
func (p *plan) follows(parent string) bool { return p.source != ownsFirst || parent == parentNames[0] }

// inProgram returns the plan for the program with a number.
func (p *plan) inProgram(number int) *plan {
	other := *p
	other.program, other.triggers = number, make(chan controller.Trigger, cap(p.triggers))
	return &other
}

func (p *plan) String() string {
	return fmt.Sprintf("%s: source %d, predicate %d, narrow %t, finalizer %t, resync %t, reads %t %t %t, slow %t, concurrency %d, if served %t, by label %t, shares %t, prunes %t",
		p.name, p.source, p.predicate, p.narrow, p.finalizer, p.resync, p.reads, p.lists, p.readsMetadata, p.slow, p.concurrency, p.ifServed, p.byLabel, p.shares, p.prunes)
}

// newPlan returns a random plan.
func newPlan(random *rand.Rand, name string) *plan {
	chance := func(n int) bool { return random.IntN(n) == 0 }
	return &plan{
		name: name, plural: name + "s", source: source(random.IntN(int(sources))), predicate: predicate(random.IntN(int(predicates))),
		narrow: chance(4), finalizer: chance(2), resync: chance(4),
		reads: chance(2), lists: chance(3), readsMetadata: chance(4), slow: chance(3),
		concurrency: 1 + random.IntN(3), triggers: make(chan controller.Trigger, 100),
		skipsStatus: chance(2),
	}
}

// desired returns the state that a parent wants.
func (p *plan) desired(labels map[string]string, size int) int {
	if p.predicate == labelsChanged {
		return len(labels[sizeLabel])
	}
	return size
}

var childResource = kube.Everywhere[child](kube.NewClientFromHandler(nil)).Resource()

// childOf returns the name of the child of a parent.
func childOf(controller, parent string) string { return controller + "-" + parent }

// options returns the options of a controller.
func (w *world) options(p *plan) []controller.Option {
	own := []controller.KindOption{controller.When(w.watcher(p, p.plural, p.selects))}
	if p.selects {
		own = append(own, controller.Select(kube.Label("sel", "y")))
	}
	if p.skipsStatus {
		own = append(own, controller.SkipOwnStatus())
	}
	switch p.predicate {
	case labelsChanged:
		own = append(own, controller.When(controller.LabelsChanged))
	case generationChanged:
		own = append(own, controller.When(controller.GenerationChanged))
	}
	options := []controller.Option{
		controller.Name(p.name), controller.Concurrency(p.concurrency), controller.Reconciled(own...),
		controller.From(func(ctx context.Context, emit func(controller.Trigger)) error {
			for {
				select {
				case t := <-p.triggers:
					emit(t)
				case <-ctx.Done():
					return nil
				}
			}
		}),
	}
	if p.resync {
		options = append(options, controller.Every(resync))
	}
	if p.quiet > 0 {
		options = append(options, controller.Debounce(p.quiet))
	}
	seen := controller.When(w.watcher(p, "children", p.source == ownsByController || p.source == ownsByTier))
	selected := controller.Select()
	if p.ifServed {
		selected = controller.IfServed()
	}
	switch p.source {
	case ownsByController, ownsByTier:
		selected = controller.Select(p.childSelectors()...)
	case ownsFirst:
		selected = controller.Select(kube.Field("metadata.name", childOf(p.name, parentNames[0])))
	}
	switch {
	case p.waits:
		options = append(options, controller.Watches(func(_ context.Context, c *child, _ *kube.Client) ([]kube.Key, error) {
			return keysFor(p, c), nil
		}, selected, seen))
	case p.source == watchesMetadata:
		options = append(options, controller.Watches(func(_ context.Context, m *metav1.PartialObjectMetadata, _ *kube.Client) ([]kube.Key, error) {
			return keysFor(p, m), nil
		}, controller.Kind(childResource), selected, seen))
	case p.byLabel:
		options = append(options, controller.OwnsByLabel[child](ownerLabel, selected, seen))
	default:
		options = append(options, controller.Owns[child](selected, seen))
	}
	return options
}

// childSelectors returns the selectors by labels of the stream of children, if it has any.
func (p *plan) childSelectors() []kube.Selector {
	switch p.source {
	case ownsByController:
		return []kube.Selector{kube.Label("app", p.name)}
	case ownsByTier:
		return []kube.Selector{kube.Label("tier", "y")}
	default:
		return nil
	}
}

// keysFor maps a child to its parent, and for a controller that waits, to the next parent too.
func keysFor(p *plan, o metav1.Object) []kube.Key {
	name, ok := strings.CutPrefix(o.GetName(), p.name+"-")
	if !ok {
		return nil
	}
	keys := []kube.Key{{Namespace: o.GetNamespace(), Name: name}}
	if p.waits {
		for i := range parentNames {
			if parentNames[i] == name && i+1 < len(parentNames) {
				keys = append(keys, kube.Key{Namespace: o.GetNamespace(), Name: parentNames[i+1]})
			}
		}
	}
	return keys
}

// watcher returns a predicate that records what the controller is shown.
func (w *world) watcher(p *plan, plural string, deselects bool) controller.Predicate {
	return func(c controller.Change) bool {
		r := c.Record()
		w.show(p.watcher(), objectName{plural, r.Namespace, r.Name}, r.ResourceVersion, string(r.UID), c.Type == controller.Deleted, deselects)
		return true
	}
}

var errWaits = errors.New("the child of the parent before this one is not as it should be")

// part is a part of a program.
type part interface {
	Start(context.Context, *controller.Runtime) error
}

// owner returns the controller of a plan.
func owner[S spec](w *world, p *plan) part {
	c := controller.New(func(ctx context.Context, o *parent[S], c *kube.Client) (controller.Action, error) {
		err := reconcile(ctx, w, p, o, c)
		if err != nil {
			w.log("the reconcile of %s %s/%s failed: %v", p.name, o.Namespace, o.Name, err)
		}
		return controller.Done(), err
	}, w.options(p)...)
	c.Backoff(func(_ *parent[S], err error, attempt int) time.Duration {
		if errors.Is(err, errWaits) || errors.Is(err, kube.ErrForeignChild) {
			return 3 * time.Hour
		}
		return min(time.Second<<min(attempt, 5), 10*time.Second)
	})
	switch {
	case p.retires && p.finalizer:
		c.FormerFinalizers("old.example.com/old")
	case p.retires:
		c.RetiredFinalizers("old.example.com/old")
	}
	if p.finalizer {
		c.Finalizer(finalizer, func(ctx context.Context, o *parent[S], c *kube.Client) (controller.Cleanup, error) {
			t := target{p.name, kube.Key{Namespace: o.Namespace, Name: o.Name}}
			_, end := w.begin(p, t, -1)
			defer end()
			if p.byLabel {
				mine, err := kube.Namespaced[child](c, o.Namespace).List(ctx, kube.Label(ownerLabel, string(o.UID)))
				if err != nil {
					return controller.CleanupPending(), err
				}
				for _, m := range mine {
					if err := kube.IgnoreNotFound(c.Delete(ctx, m)); err != nil {
						return controller.CleanupPending(), err
					}
				}
				if len(mine) > 0 {
					return controller.CleanupPending(), nil
				}
			}
			err := kube.Namespaced[child](c, o.Namespace).Delete(ctx, "extra-"+childOf(p.name, o.Name))
			return controller.CleanupDone(), kube.IgnoreNotFound(err)
		})
	}
	return c
}

func reconcile[S spec](ctx context.Context, w *world, p *plan, o *parent[S], c *kube.Client) error {
	desired := p.desired(o.Labels, o.Spec.size())
	t := target{p.name, kube.Key{Namespace: o.Namespace, Name: o.Name}}
	r, end := w.begin(p, t, desired)
	defer end()
	if p.slow {
		time.Sleep(time.Duration(w.intN(2000)) * time.Millisecond)
	}
	children := kube.Namespaced[child](c, o.Namespace)
	name := childOf(p.name, o.Name)
	if p.waits {
		if err := waitsFor[S](ctx, p, o, c, r); err != nil {
			return err
		}
	}
	at := objectName{"children", o.Namespace, name}
	if p.reads {
		f := r.floor(at)
		live, err := children.Get(ctx, name)
		if err := r.read(at, f, live, err); err != nil {
			return err
		}
	}
	if p.readsMetadata {
		f := r.floor(at)
		live, err := kube.Metadata(c, childResource, o.Namespace).Get(ctx, name)
		if err == nil {
			r.check(at, f, live)
		} else if !kube.IsNotFound(err) {
			return err
		}
	}
	if p.lists {
		f := r.floor(at)
		var found *child
		selectors := p.childSelectors()
		for each, err := range children.Each(ctx, selectors...) {
			if err != nil {
				return err
			}
			if each.Name == name {
				found = each
			}
		}
		switch {
		case found != nil:
			r.check(at, f, found)
		case len(selectors) == 0: // otherwise the child may have lost its labels
			r.check(at, f, nil)
		}
	}
	wanted := &child{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: name, Labels: map[string]string{"app": p.name, "tier": "y"},
	}, Spec: childSpec{Height: desired}}
	owned := wanted
	if p.byLabel {
		kube.OwnedByLabel(o, ownerLabel, wanted)
	} else {
		owned = kube.OwnedBy(o, wanted)
	}
	applied, err := kube.Apply(ctx, c, owned)
	if err != nil {
		return err
	}
	w.write(at, applied)
	if p.reads {
		f := r.floor(at)
		live, err := children.Get(ctx, name)
		if err := r.read(at, f, live, err); err != nil {
			return err
		}
	}
	if p.finalizer {
		extra := &child{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "extra-" + name}, Spec: childSpec{Height: desired}}
		applied, err := kube.Apply(ctx, c, extra)
		if err != nil {
			return err
		}
		w.write(objectName{"children", o.Namespace, extra.Name}, applied)
	}
	if p.prunes {
		if err := prune(ctx, w, p, o.Name, children, c, r); err != nil {
			return err
		}
	}
	o.Status.Size = desired
	if err := c.ApplyStatus(ctx, o); err != nil || !p.shares {
		return err
	}
	shared := &child{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: sharedPrefix + p.name}, Spec: childSpec{Height: desired}}
	kube.OwnedByLabel(o, ownerLabel, shared)
	_, err = kube.Apply(ctx, c, shared)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holders[t] = err == nil
	return err
}

// prune makes an object, deletes it between the pages of a live list, and checks that it is not read any more.
func prune(ctx context.Context, w *world, p *plan, parent string, children kube.API[child], c *kube.Client, r *reading) error {
	namespace, name := r.target.Namespace, "temporary-"+childOf(p.name, parent)
	made, err := kube.Apply(ctx, c, &child{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"temporary": name}}})
	if err != nil {
		return err
	}
	isDeleted := false
	for _, err := range kube.Namespaced[child](c.Live(), namespace).Each(ctx) {
		if err != nil {
			return err
		}
		if isDeleted {
			continue
		}
		isDeleted = true
		if w.intN(2) == 0 {
			err = children.Delete(ctx, name)
		} else {
			err = children.DeleteAll(ctx, []kube.Selector{kube.Label("temporary", name)})
		}
		if err != nil {
			return err
		}
	}
	live, err := children.Get(ctx, name)
	if err != nil {
		return kube.IgnoreNotFound(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if isDeleted && live.UID == made.UID && !(w.restored && !w.noticed) {
		w.problemLocked("the reconcile of %s read %s/%s at version %s, which it has deleted", r.target, namespace, name, live.ResourceVersion)
	}
	return nil
}

// waitsFor returns an error unless the child of the parent before o is as that parent wants it.
func waitsFor[S spec](ctx context.Context, p *plan, o *parent[S], c *kube.Client, r *reading) error {
	before := ""
	for i, name := range parentNames {
		if name == o.Name && i > 0 {
			before = parentNames[i-1]
		}
	}
	if before == "" {
		return nil
	}
	at := objectName{"children", o.Namespace, childOf(p.name, before)}
	f := r.floor(at)
	live, err := kube.Namespaced[child](c, o.Namespace).Get(ctx, at.name)
	if err := r.read(at, f, live, err); err != nil {
		return err
	}
	if live == nil || live.Spec.Height < o.Spec.size() {
		return errWaits
	}
	return nil
}

// read checks the result of a get.
func (r *reading) read(at objectName, f floor, live *child, err error) error {
	switch {
	case err == nil:
		r.check(at, f, live)
	case kube.IsNotFound(err):
		r.check(at, f, nil)
	default:
		return err
	}
	return nil
}

// program is a running program.
type program struct {
	plans []*plan
	// elected is closed when the program begins to lead.
	elected chan struct{}
	// termVersion is the version of the server when the program began to lead. It is 0 before.
	termVersion atomic.Int64
	cancel      context.CancelFunc
	ended       sync.WaitGroup
	cache       *cache.Cache
}

// start starts a program. It does not lead.
func (w *world) start(plans []*plan) *program {
	client := kube.NewClientFromHandler(w.front)
	p := &program{plans: plans, elected: make(chan struct{})}
	p.cache = cache.New(client, cache.OnError(w.checkStreamError), cache.TermVersion(func() string {
		if v := p.termVersion.Load(); v > 0 {
			return strconv.FormatInt(v, 10)
		}
		return ""
	}))
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	for _, each := range plans {
		var c part
		switch each.name {
		case "alpha":
			c = owner[alphaSpec](w, each)
		case "beta":
			c = owner[betaSpec](w, each)
		case "waiter":
			c = owner[waiterSpec](w, each)
		}
		rt := &controller.Runtime{Client: client, Cache: p.cache, Log: slog.New(slog.DiscardHandler), Elected: p.elected}
		if each.narrow {
			rt.Client = client.InNamespaces(namespaces...)
		}
		w.run(ctx, p, each.name, c, rt)
	}
	if w.front.broken != readable {
		rt := &controller.Runtime{Client: client, Cache: p.cache, Log: slog.New(slog.DiscardHandler), Elected: p.elected}
		w.run(ctx, p, "gamma", controller.New(func(_ context.Context, o *parent[gammaSpec], _ *kube.Client) (controller.Action, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.problemLocked("%s was reconciled, whose kind is %s", o.Name, w.front.broken)
			return controller.Done(), nil
		}, controller.Owns[child]()), rt)
	}
	return p
}

// run runs a part of a program until ctx ends.
func (w *world) run(ctx context.Context, p *program, name string, c part, rt *controller.Runtime) {
	p.ended.Go(func() {
		if err := c.Start(ctx, rt); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.problemLocked("the controller %s ended: %v", name, err)
		}
	})
}

// lead makes a program the leader. No other program leads.
func (w *world) lead(p *program) {
	p.termVersion.Store(int64(w.server.Version()))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leader = p.plans[0].program
	w.logLocked("the program %d leads", w.leader)
	clear(w.written)
	clear(w.last)
	close(p.elected)
}

func (p *program) stop() {
	p.cancel()
	p.ended.Wait()
	p.cache.Close()
}
