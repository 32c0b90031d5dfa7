package programmodel

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

var (
	namespaces  = []string{"n1", "n2"}
	parentNames = []string{"p0", "p1"}
)

const (
	// settling is how long the program has to repair everything once all faults are over. It is
	// longer than any back-off but the back-off of a Waiter.
	settling = 30 * time.Minute
	// maxDelay is the longest delay of an event.
	maxDelay = 5 * time.Second
	// resting is how long the program is watched at rest.
	resting = 15 * time.Minute
)

func TestProgram(t *testing.T) {
	t.Parallel()
	runs := 300
	if testing.Short() {
		runs = 60
	}
	if n, err := strconv.Atoi(os.Getenv("YARE_MODEL_RUNS")); err == nil {
		runs = n
	}
	first, _ := strconv.ParseUint(os.Getenv("YARE_MODEL_SEED"), 10, 64)
	failed := 0
	for seed := first; seed < first+uint64(runs); seed++ {
		w := run(t, seed)
		if len(w.problems) == 0 {
			continue
		}
		failed++
		t.Errorf("seed %d: %s", seed, strings.Join(w.problems, "\n\t"))
		if testing.Verbose() && failed == 1 {
			t.Logf("%s", strings.Join(w.trace, "\n"))
		}
		if failed == 200 {
			t.Fatalf("%d of %d seeds failed", failed, seed-first+1)
		}
	}
}

// TestProgramByLabelAndSelector runs the model with owners by label and with selectors of For, which
// come and go. Some seeds fail without any fault.
func TestProgramByLabelAndSelector(t *testing.T) {
	t.Setenv("YARE_MODEL_MODE", "label,select")
	for seed := uint64(98_000_000); seed < 98_000_300; seed++ {
		if w := run(t, seed); len(w.problems) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(w.problems, "\n\t"))
		}
	}
}

// TestProgramInAllModes runs the model with owners by label, selectors, finalizers of former releases and debounced triggers. In the
// seed 970004252 a restored server has an object that does not match the selectors, with a finalizer that the program had removed
// before. No stream shows the object, and nobody removed the finalizer.
func TestProgramInAllModes(t *testing.T) {
	t.Setenv("YARE_MODEL_MODE", "label,select,retire,debounce")
	for seed := uint64(970_004_200); seed < 970_004_400; seed++ {
		if w := run(t, seed); len(w.problems) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(w.problems, "\n\t"))
		}
	}
}

// run runs the model with a seed.
func run(t *testing.T, seed uint64) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		// The steps of a seed are the same whatever the program does.
		steps := rand.New(rand.NewPCG(seed, 1))
		w = newWorld(rand.New(rand.NewPCG(seed, 2)))
		plans := []*plan{newPlan(steps, "alpha")}
		if steps.IntN(4) > 0 {
			plans = append(plans, newPlan(steps, "beta"))
		}
		if len(plans) == 1 || steps.IntN(2) == 0 {
			waiter := newPlan(steps, "waiter")
			waiter.waits, waiter.predicate = true, everyChange
			if waiter.source == ownsByController || waiter.source == watchesMetadata {
				waiter.source = ownsAll
			}
			plans = append(plans, waiter)
		}
		extra := rand.New(rand.NewPCG(seed, 7))
		mode := os.Getenv("YARE_MODEL_MODE")
		for _, p := range plans {
			has := func(m string) bool { return strings.Contains(mode, m) && extra.IntN(2) == 0 }
			p.selects = has("select") && !p.waits
			p.retires = has("retire")
			p.byLabel = has("label") && !p.waits && p.finalizer && p.source != watchesMetadata && p.source != ownsByTier && p.source != ownsByController
			if has("debounce") {
				p.quiet = time.Duration(1+extra.IntN(3000)) * time.Millisecond
			}
		}
		d := &driver{world: w, plans: plans, extra: extra, random: steps, more: rand.New(rand.NewPCG(seed, 11)), restores: steps.IntN(3) == 0}
		d.extend()
		d.breakKind(rand.New(rand.NewPCG(seed, 13)))
		if d.random.IntN(2) == 0 {
			w.server.Bookmarks(time.Minute)
		}
		if d.random.IntN(2) == 0 {
			w.server.RefuseExpiredWatches()
		}
		for _, p := range plans {
			w.log("%s", p)
			for _, name := range parentNames {
				d.create(p, namespaces[d.random.IntN(2)], name)
			}
		}
		d.program = w.start(plans)
		if d.hasStandby {
			var others []*plan
			for _, p := range plans {
				others = append(others, p.inProgram(1))
			}
			d.standby = w.start(others)
		}
		if !d.startsAsStandby {
			w.lead(d.program)
		}
		for range 10 + d.random.IntN(20) {
			time.Sleep(time.Duration(d.random.IntN(8000)) * time.Millisecond)
			d.step()
			d.stepMore()
		}
		d.elect()
		d.handOver()
		d.settle()
		d.program.stop()
	})
	return w
}

// driver changes the world.
type driver struct {
	extra *rand.Rand
	// more decides about standbys, pages, absent kinds, proxies without a route and shared children.
	more *rand.Rand
	// startsAsStandby is true if the program waits for its election at first. isElected is true after it.
	startsAsStandby, isElected bool
	// hasStandby is true if a second program waits until the first one ends. standby is nil after that.
	hasStandby bool
	standby    *program
	// removes is true if the kind of the children is removed at times, and losesRoute if a proxy has no route at times.
	removes, losesRoute bool
	world               *world
	random              *rand.Rand
	plans               []*plan
	program             *program
	// backup is a backup that can be restored. There is at most one in a run.
	restores bool
	backup   *fakeserver.Snapshot
	restored bool
	delayed  []delayed
}

// extend decides which of the rarer events a run has, and changes the plans for them.
func (d *driver) extend() {
	chance := func(n int) bool { return d.more.IntN(n) == 0 }
	d.startsAsStandby, d.hasStandby = chance(5), chance(5)
	if chance(2) {
		d.world.front.pageItems = 1 + d.more.IntN(3)
	}
	d.removes, d.losesRoute = chance(5), chance(5)
	for _, p := range d.plans {
		p.prunes = chance(4) && !p.resync
		p.ifServed = chance(4) && (p.waits || p.source == ownsAll || p.source == watchesMetadata)
		if chance(4) && !p.waits && p.finalizer && p.source == ownsAll {
			p.byLabel = true
		}
		p.shares = p.byLabel && p.source == ownsAll && !p.resync && chance(2)
		// Nothing repairs a child that no stream shows.
		if chance(6) && !p.waits && !p.byLabel && !p.ifServed && p.source == ownsAll && !d.removes {
			p.source = ownsFirst
		}
	}
}

// breakKind gives the program one more controller in some runs, whose kind it cannot read.
func (d *driver) breakKind(random *rand.Rand) {
	w := d.world
	if random.IntN(4) > 0 {
		return
	}
	w.front.broken = []brokenKind{forbidden, absent, undecodable}[random.IntN(3)]
	w.log("the gammas are %s", w.front.broken)
	if w.front.broken == undecodable {
		gamma := &plan{name: "gamma", plural: "gammas"}
		d.sendAsStranger(wire.VerbCreate, d.resource(gamma), namespaces[0], "", `{"metadata":{"name":"a"},"spec":{"size":"large"}}`)
	}
}

// elect makes the first program the leader, unless it leads already.
func (d *driver) elect() {
	if d.startsAsStandby && !d.isElected {
		d.world.lead(d.program)
	}
	d.isElected = true
}

// handOver ends the first program, and makes the standby the leader. In some runs the watches of the standby show
// everything before it leads.
func (d *driver) handOver() {
	if d.standby == nil {
		return
	}
	d.elect()
	if d.more.IntN(2) != 0 {
		for _, s := range d.world.server.Streams() {
			s.Thaw()
			s.Allow()
			s.Delay(0)
		}
		time.Sleep(3 * time.Minute)
	}
	d.program.stop()
	synctest.Wait()
	d.program, d.standby = d.standby, nil
	d.world.lead(d.program)
}

// replaceLeader ends the process of the leader. The standby leads, or a new process if there is no standby.
func (d *driver) replaceLeader() {
	if d.standby == nil {
		var others []*plan
		for _, p := range d.program.plans {
			others = append(others, p.inProgram(p.program+1))
		}
		d.standby = d.world.start(others)
		for _, later := range d.delayed { // the source of these triggers sends them to the new process too
			for _, p := range others {
				if p.name == later.target.controller {
					p.triggers <- controller.Trigger{Key: later.target.Key, NotBefore: later.at, Cause: "later"}
				}
			}
		}
	}
	d.handOver()
}

// stepMore makes one of the rarer changes at times.
func (d *driver) stepMore() {
	switch d.more.IntN(12) {
	case 0:
		d.elect()
	case 1:
		d.handOver()
	case 2:
		if d.removes {
			d.removeChildren()
		}
	case 3:
		if d.losesRoute {
			d.loseRoute()
		}
	case 4, 5:
		p := d.plans[d.more.IntN(len(d.plans))]
		if p.shares {
			namespace := namespaces[d.more.IntN(2)]
			if d.more.IntN(2) == 0 {
				d.sendAsStranger(wire.VerbPatch, childResource, namespace, sharedPrefix+p.name, `{"spec":{"height":9}}`)
			} else {
				d.sendAsStranger(wire.VerbDelete, childResource, namespace, sharedPrefix+p.name, "")
			}
		}
	}
}

// removeChildren removes the kind of the children with all objects, for a while.
func (d *driver) removeChildren() {
	w := d.world
	w.front.set(func(f *front) { f.isAbsent = true })
	synctest.Wait() // no request is between its refusal and the server
	for _, o := range w.server.Objects(childResource.Plural) {
		metadata := o["metadata"].(map[string]any)
		w.server.Remove(childResource.Plural, metadata["namespace"].(string), metadata["name"].(string), nil)
	}
	for _, s := range w.server.Streams() {
		if s.ID.Plural == childResource.Plural {
			s.End()
		}
	}
	w.log("the kind of the children is removed")
	time.Sleep(time.Duration(d.more.IntN(90)) * time.Second)
	w.front.set(func(f *front) { f.isAbsent = false })
	w.log("the kind of the children is served again")
}

// loseRoute lets a proxy answer every request of the programs with 404 for a while.
func (d *driver) loseRoute() {
	w := d.world
	w.front.set(func(f *front) { f.hasNoRoute = true })
	for _, s := range w.server.Streams() {
		s.Cut()
	}
	w.log("the proxy has no route")
	time.Sleep(time.Duration(d.more.IntN(40)) * time.Second)
	w.front.set(func(f *front) { f.hasNoRoute = false })
	w.log("the proxy has a route again")
}

// delayed is a trigger for later.
type delayed struct {
	target target
	at     time.Time
}

func (d *driver) resource(p *plan) wire.Resource {
	r := childResource
	r.Plural, r.Kind = p.plural, strings.ToUpper(p.name[:1])+p.name[1:]
	return r
}

// sendAsStranger sends a request of a stranger.
func (d *driver) sendAsStranger(verb wire.Verb, r wire.Resource, namespace, name, body string) {
	request := &wire.Request{Verb: verb, Resource: r, Namespace: namespace, Name: name, Body: []byte(body)}
	if verb == wire.VerbPatch {
		request.ContentType = wire.ContentMergePatch
	}
	if verb == wire.VerbCreate {
		request.Name = ""
	}
	err := d.world.front.refuseAbsent(request)
	if err == nil {
		_, err = d.world.server.Do(stranger(), request)
	}
	d.world.log("a stranger sends %s %s %s/%s %s: %v", verb, r.Plural, namespace, name, body, err)
}

func (d *driver) create(p *plan, namespace, name string) {
	if p.waits {
		namespace = namespaces[0] // a waiter and the one before it live in the same namespace
	}
	size := 1 + d.random.IntN(3)
	d.sendAsStranger(wire.VerbCreate, d.resource(p), namespace, name,
		fmt.Sprintf(`{"metadata":{"name":%q%s,"labels":{"sel":"y","size":%q}},"spec":{"size":%d}}`, name, d.retired(p), strings.Repeat("x", size), size))
}

func (d *driver) retired(p *plan) string {
	if p.retires && d.extra.IntN(2) == 0 {
		return `,"finalizers":["old.example.com/old"]`
	}
	return ""
}

// step makes one change that users, strangers or the network make.
func (d *driver) step() {
	w := d.world
	p := d.plans[d.random.IntN(len(d.plans))]
	name, namespace := parentNames[d.random.IntN(len(parentNames))], namespaces[d.random.IntN(2)]
	if p.waits {
		namespace = namespaces[0]
	}
	kid := childOf(p.name, name)
	if p.selects && d.extra.IntN(3) == 0 {
		d.sendAsStranger(wire.VerbPatch, d.resource(p), namespace, name, fmt.Sprintf(`{"metadata":{"labels":{"sel":%q}}}`, []string{"y", "n"}[d.extra.IntN(2)]))
	}
	size := 1 + d.random.IntN(3)
	switch d.random.IntN(20) {
	case 0, 1:
		d.sendAsStranger(wire.VerbPatch, d.resource(p), namespace, name, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
	case 2:
		d.sendAsStranger(wire.VerbPatch, d.resource(p), namespace, name, fmt.Sprintf(`{"metadata":{"labels":{"size":%q}}}`, strings.Repeat("x", size)))
	case 3, 4, 5:
		d.sendAsStranger(wire.VerbPatch, childResource, namespace, kid, `{"spec":{"height":9}}`)
	case 6:
		d.sendAsStranger(wire.VerbPatch, childResource, namespace, kid, `{"metadata":{"labels":{"app":"stolen"}},"spec":{"height":8}}`)
	case 7:
		d.sendAsStranger(wire.VerbPatch, childResource, namespace, kid, `{"metadata":{"labels":{"tier":null}},"spec":{"height":7}}`)
	case 8:
		d.sendAsStranger(wire.VerbDelete, childResource, namespace, kid, "")
	case 9:
		d.sendAsStranger(wire.VerbDelete, d.resource(p), namespace, name, "")
	case 10, 11:
		d.create(p, namespace, name)
	case 12:
		after := time.Duration(d.random.IntN(600)) * time.Second
		at := time.Now().Add(after)
		w.log("a trigger of %s %s/%s for %s", p.name, namespace, name, at.Sub(w.started))
		trigger := controller.Trigger{Key: kube.Key{Namespace: namespace, Name: name}, NotBefore: at, Cause: "later"}
		for _, each := range []*program{d.program, d.standby} {
			if each != nil {
				each.plans[slices.Index(d.plans, p)].triggers <- trigger
			}
		}
		d.delayed = append(d.delayed, delayed{target{p.name, kube.Key{Namespace: namespace, Name: name}}, at})
	case 13:
		if !d.restores {
			d.fault()
		} else if d.backup == nil {
			backup := w.server.Snapshot()
			d.backup = &backup
			w.server.Advance(lostVersions)
			w.log("a backup is made")
		} else if !d.restored {
			d.restore()
		}
	case 14:
		w.server.Compact()
		w.log("the history is compacted, %d objects of garbage are collected", w.server.CollectGarbage())
	default:
		d.fault()
	}
}

// lostVersions is the least number of versions that a restored server has lost. So the server does not reach by itself
// what the program has seen.
const lostVersions = 100000

// restore restores the backup. In some runs the restored server passes at once what all streams have seen, but for one
// stream, which has received a bookmark of a later version.
func (d *driver) restore() {
	w := d.world
	var ahead *fakeserver.Stream
	if d.extra.IntN(2) == 0 {
		for _, s := range w.server.Streams() {
			s.Thaw()
			s.Delay(0)
		}
		time.Sleep(maxDelay) // a bookmark would wait for the events before it, and would be lost with the watch
		for _, s := range w.server.Streams() {
			if ahead == nil && s.Watches() > 0 {
				ahead = s
			}
		}
	}
	if ahead != nil {
		w.server.Advance(lostVersions)
		ahead.Bookmark()
		synctest.Wait()
	}
	w.restore(*d.backup)
	d.restored = true
	w.log("the backup is restored")
	if d.program.termVersion.Load() > int64(w.server.Version()) {
		// The leader finds a Lease that is older than its term, at its next renewal at the latest, and its process ends.
		time.Sleep(time.Duration(d.more.IntN(4000)) * time.Millisecond)
		d.replaceLeader()
	}
	if ahead == nil {
		return
	}
	w.server.Advance(lostVersions + lostVersions/2)
	w.log("the server passes all streams but %v", ahead.ID)
	time.Sleep(2 * time.Second)
	// Most streams show something new before their probes, and so find no loss.
	for _, p := range d.plans {
		for _, namespace := range namespaces {
			for _, name := range parentNames {
				d.sendAsStranger(wire.VerbPatch, d.resource(p), namespace, name, `{"metadata":{"labels":{"season":"winter"}}}`)
				d.sendAsStranger(wire.VerbPatch, childResource, namespace, childOf(p.name, name), `{"spec":{"height":9}}`)
			}
		}
	}
}

// fault makes a random stream fail, or recover.
func (d *driver) fault() {
	w := d.world
	streams := w.server.Streams()
	if len(streams) == 0 {
		return
	}
	s := streams[d.random.IntN(len(streams))]
	what := ""
	switch d.random.IntN(8) {
	case 0, 1:
		s.Freeze()
		what = "frozen"
	case 2:
		s.Thaw()
		what = "thawed"
	case 3:
		s.Delay(time.Duration(d.random.IntN(int(maxDelay/time.Millisecond))) * time.Millisecond)
		what = "delayed"
	case 4:
		s.Cut()
		what = "cut"
	case 5, 6:
		code := []int{http.StatusForbidden, http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusTooManyRequests}[d.random.IntN(4)]
		s.Refuse(code, "")
		s.Cut()
		what = fmt.Sprint("refused with ", code)
	case 7:
		s.Allow()
		what = "allowed"
		if d.random.IntN(2) == 0 {
			s.Expire()
			what = "allowed and expired"
		}
	}
	w.log("%+v is %s", s.ID, what)
}

// settle ends all faults, waits until the program is at rest, and checks the outcome.
func (d *driver) settle() {
	w := d.world
	w.mu.Lock()
	w.calm = true
	w.logLocked("all faults are over")
	w.mu.Unlock()
	for _, s := range w.server.Streams() {
		s.Thaw()
		s.Allow()
		s.Delay(0)
	}
	// Every API server sends bookmarks. Without bookmarks a store without changes cannot show that it
	// knows of the objects missing from a list of another stream, and resyncs read live.
	w.server.Bookmarks(time.Minute)
	for range 6 {
		time.Sleep(settling / 6)
		w.server.CollectGarbage()
	}
	synctest.Wait()
	w.notice()
	d.check()
	d.deadWatches()
	d.rest()
	d.deletions()
}

// deletions deletes objects of a program at rest, and requires that the program cleans up before
// the next resync: nothing but the deletion itself triggers that.
func (d *driver) deletions() {
	if d.world.failed() {
		return
	}
	for _, p := range d.plans {
		for _, namespace := range namespaces {
			d.sendAsStranger(wire.VerbDelete, d.resource(p), namespace, parentNames[0], "")
		}
	}
	for range 2 {
		time.Sleep(time.Minute)
		d.world.server.CollectGarbage()
	}
	time.Sleep(time.Second)
	d.check()
}

// deadWatches lets every watch of children die for a while, during which resyncs have to repair
// what strangers do, and then come back.
func (d *driver) deadWatches() {
	w := d.world
	var resynced []*plan
	for _, p := range d.plans {
		if p.resync && !p.waits {
			resynced = append(resynced, p)
		}
	}
	if len(resynced) == 0 || w.failed() {
		return
	}
	w.log("the watches of children die")
	for _, s := range w.server.Streams() {
		if s.ID.Plural == childResource.Plural {
			s.RefuseWatches(http.StatusForbidden, "")
			s.Cut()
		}
	}
	time.Sleep(time.Minute)
	for _, p := range resynced {
		for _, namespace := range namespaces {
			for _, name := range parentNames {
				d.sendAsStranger(wire.VerbPatch, childResource, namespace, childOf(p.name, name), `{"spec":{"height":9}}`)
			}
		}
	}
	time.Sleep(2*resync + time.Minute)
	d.check()
	for _, s := range w.server.Streams() {
		s.Allow()
	}
	time.Sleep(settling)
}

// check checks that everything is as it should be.
func (d *driver) check() {
	w := d.world
	for range 100 { // a resync may be under way
		w.mu.Lock()
		running := len(w.running)
		w.mu.Unlock()
		if running == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.running {
		w.problemLocked("%s is still being reconciled", t)
	}
	for _, p := range d.plans {
		for _, namespace := range namespaces {
			for _, name := range parentNames {
				d.checkParent(p, namespace, name)
			}
		}
	}
	for _, l := range d.delayed {
		// Who does not exist at that time, or was made anew since, is reconciled in any case.
		if w.server.Object(l.target.controller+"s", l.target.Namespace, l.target.Name) == nil {
			continue
		}
		selects := false
		for _, p := range d.plans {
			selects = selects || p.name == l.target.controller && p.selects
		}
		if selects {
			continue
		}
		met := false
		for _, begun := range w.begun[l.target] {
			met = met || !begun.Before(l.at)
		}
		if !met {
			w.problemLocked("%s was not reconciled after %s, which a trigger asked for", l.target, l.at.Sub(w.started))
		}
	}
}

func (d *driver) checkParent(p *plan, namespace, name string) {
	w := d.world
	t := target{p.name, kube.Key{Namespace: namespace, Name: name}}
	kid := w.server.Object("children", namespace, childOf(p.name, name))
	extra := w.server.Object("children", namespace, "extra-"+childOf(p.name, name))
	o := w.server.Object(p.plural, namespace, name)
	if o == nil {
		if kid != nil && !(p.byLabel && w.restored) {
			w.problemLocked("%s is gone, and its child is not", t)
		}
		if extra != nil && !w.restored {
			w.problemLocked("%s is gone, and was not cleaned up", t)
		}
		return
	}
	metadata := o["metadata"].(map[string]any)
	if metadata["deletionTimestamp"] != nil {
		w.problemLocked("%s is being deleted and does not go", t)
		return
	}
	labels := map[string]string{}
	for k, v := range metadata["labels"].(map[string]any) {
		labels[k] = v.(string)
	}
	if p.selects && labels["sel"] != "y" {
		if p.byLabel && kid != nil && !w.restored {
			w.problemLocked("%s is not selected, and has a child", t)
		}
		if p.finalizer && (extra != nil && !w.restored || metadata["finalizers"] != nil) {
			w.problemLocked("%s is not selected, and has the finalizers %v, and the extra child %v", t, metadata["finalizers"], extra)
		}
		return
	}
	if p.retires && strings.Contains(fmt.Sprint(metadata["finalizers"]), "old.example.com") {
		w.problemLocked("%s has the finalizers %v", t, metadata["finalizers"])
	}
	desired := p.desired(labels, int(o["spec"].(map[string]any)["size"].(int64)))
	if p.waits && !d.mayHaveChild(p, namespace, name) {
		return
	}
	if got := w.last[t]; got != desired {
		w.problemLocked("%s wants %d, and its last reconcile saw %d", t, desired, got)
	}
	d.checkShared(p, t, metadata, desired)
	switch {
	case !p.follows(name): // nothing shows what strangers do to the child
	case kid == nil:
		w.problemLocked("%s has no child", t)
	case kid["spec"].(map[string]any)["height"] != int64(desired):
		w.problemLocked("%s wants its child to be %d high, and it is %v", t, desired, kid["spec"])
	case p.byLabel:
		if got, want := fmt.Sprint(kid["metadata"].(map[string]any)["labels"]), fmt.Sprintf("map[app:%s owner:%v tier:y]", p.name, metadata["uid"]); got != want {
			w.problemLocked("the child of %s has the labels %v, want %v", t, got, want)
		}
	case fmt.Sprint(kid["metadata"].(map[string]any)["labels"]) != fmt.Sprintf("map[app:%s tier:y]", p.name):
		w.problemLocked("the child of %s has the labels %v", t, kid["metadata"].(map[string]any)["labels"])
	}
	if p.finalizer && (extra == nil || fmt.Sprint(metadata["finalizers"]) != "["+finalizer+"]") {
		w.problemLocked("%s has the finalizers %v, and the extra child %v", t, metadata["finalizers"], extra)
	}
	if s, _ := o["status"].(map[string]any); s["size"] != int64(desired) {
		w.problemLocked("%s wants %d, and its status is %v", t, desired, s)
	}
}

// checkShared checks that a parent which has applied the child that it shares has it.
func (d *driver) checkShared(p *plan, t target, metadata map[string]any, desired int) {
	w := d.world
	if !p.shares || !w.holders[t] {
		return
	}
	shared := w.server.Object(childResource.Plural, t.Namespace, sharedPrefix+p.name)
	switch {
	case shared == nil:
		w.problemLocked("%s has applied the shared child, which does not exist", t)
	case shared["metadata"].(map[string]any)["labels"].(map[string]any)[ownerLabel] != metadata["uid"]:
		w.problemLocked("%s has applied the shared child, which has the labels %v", t, shared["metadata"].(map[string]any)["labels"])
	case shared["spec"].(map[string]any)["height"] != int64(desired):
		w.problemLocked("%s wants the shared child to be %d high, and it is %v", t, desired, shared["spec"])
	}
}

// mayHaveChild reports whether a Waiter has what it waits for: the child of the one before, as
// high as itself at least.
func (d *driver) mayHaveChild(p *plan, namespace, name string) bool {
	size := func(o map[string]any, field string) int64 {
		if o == nil {
			return 0
		}
		return o["spec"].(map[string]any)[field].(int64)
	}
	for i, each := range parentNames {
		if each == name && i > 0 {
			before := parentNames[i-1]
			return size(d.world.server.Object("children", namespace, childOf(p.name, before)), "height") >=
				size(d.world.server.Object(p.plural, namespace, name), "size")
		}
	}
	return true
}

// isUnseen reports whether r is about a child that its controller does not follow.
func (d *driver) isUnseen(r *wire.Request) bool {
	return slices.ContainsFunc(d.plans, func(p *plan) bool {
		return slices.ContainsFunc(parentNames, func(parent string) bool { return r.Name == childOf(p.name, parent) && !p.follows(parent) })
	})
}

// rest checks that the program does nothing once there is nothing to do.
func (d *driver) rest() {
	w := d.world
	w.mu.Lock()
	before := w.reconciles
	w.mu.Unlock()
	w.server.ForgetRequests()
	time.Sleep(resting)
	synctest.Wait()
	// A resync may read live what no stream covers.
	covered, readsLive := false, false
	for _, p := range d.plans {
		covered = covered || p.source == ownsAll
		readsLive = readsLive || p.resync && (p.reads || p.lists || p.readsMetadata || p.waits)
	}
	readsLive = readsLive && !covered
	counts := map[string]int{}
	for _, e := range w.server.Requests() {
		r := e.Request
		// Nothing of what the program watches shows whether such a child is as it should be.
		if strings.HasPrefix(r.Name, "extra-") || d.isUnseen(r) || readsLive && (r.Verb == wire.VerbGet || r.Verb == wire.VerbList) {
			continue
		}
		if r.Verb != wire.VerbWatch || r.Query.Get("sendInitialEvents") != "" {
			counts[fmt.Sprintf("%s %s/%s %s/%s", r.Verb, r.Resource.Plural, r.Subresource, r.Namespace, r.Name)]++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(counts) > 0 {
		w.problemLocked("at rest the program sent %v", counts)
	}
	allowed := 0
	for _, p := range d.plans {
		if p.resync {
			allowed += (int(resting/resync) + 1) * len(namespaces) * len(parentNames)
		}
	}
	if n := w.reconciles - before; n > allowed {
		w.problemLocked("at rest the program ran %d reconciles, and %d resyncs", n, allowed)
	}
}
