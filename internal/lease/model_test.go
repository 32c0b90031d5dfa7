package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// workSpec is the spec of the objects that leaders write.
type workSpec struct {
	Term  string `json:"term"`
	Count int    `json:"count"`
}

func (workSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Work", Plural: "works"}
}

type work = kube.CustomResource[workSpec, kube.None]

// world is one run of the model: a server, replicas whose machines, networks and logs fail, and somebody who edits
// and deletes the Lease by hand.
type world struct {
	t      *testing.T
	server *fakeserver.Server

	mu     sync.Mutex
	random *rand.Rand
	// calm is true when nothing fails any more.
	calm bool
	// processes counts the processes so far.
	processes int
	// writes holds the writes that the server carried out: the process by resource version.
	writes map[int]string
	// all holds all processes by name.
	all map[string]*process
	// releases counts the terms that ended in an orderly way, and edits the changes of the Lease by hand.
	releases, edits int
	// deletions holds the resource versions at which somebody deleted the Lease.
	deletions []int
	started   time.Time
	// trace holds what happened, for the log of a run that fails: the same seed does not make the same run.
	trace []string
}

// recordLocked adds a line to the trace.
func (w *world) recordLocked(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%s: ", time.Since(w.started))+fmt.Sprintf(format, args...))
}

// maxDelay is the longest time that a request or an answer is under way. It is shorter than the time
// between the deadline of a leader and the take-over, less the difference that the clocks may have.
const maxDelay = 4 * time.Second

// modelTiming returns the times of the elections of the model: those of a lease that is shorter than the default, so
// that more happens in a run.
func modelTiming() Timing { return proportional(15 * time.Second) }

// longestEnd is how long after the loss of its lease a process may run.
const longestEnd = 2 * time.Second

// below returns a random duration below d.
func (w *world) below(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.random.Int64N(int64(d)))
}

// drawOneIn returns true in one of n calls, at random. It returns false when nothing fails any more.
func (w *world) drawOneIn(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && w.random.IntN(n) == 0
}

// delay returns how long a message is under way.
func (w *world) delay() time.Duration {
	if w.drawOneIn(8) {
		return w.below(maxDelay)
	}
	return w.below(20 * time.Millisecond)
}

// machine is where the processes of one replica run, one after the other.
type machine struct {
	*world
	started time.Time
	// rate is how fast the clocks of the machine are.
	rate float64

	mu sync.Mutex
	// set is by how much the clock was set that somebody sets.
	set time.Duration
	// isCut is true while the network of the machine is down. stopped is not nil while its process
	// is stopped, and is closed when the process goes on.
	isCut   bool
	stopped chan struct{}
	// logBlocked is not nil while the writer of the log blocks, and is closed when it goes on.
	logBlocked chan struct{}
	streams    map[io.Closer]bool
	// process is the process that runs on the machine.
	process *process
}

// process is one process of a replica. It has one term at most.
type process struct {
	*machine
	name    string
	started time.Time
	fence   *Fence
	elector *Elector
	ended   chan struct{}

	// claim is the resource version at which the server stored the claim that began the term. The mutex of the world guards
	// it.
	claim int

	mu sync.Mutex
	// seen holds the bytes of all Leases that reached the process.
	seen []byte
	// claimed is the length of seen when the process sent its last claim.
	claimed int
	// lostAt is when the test found that the process has lost its lease.
	lostAt time.Time
}

// hasSeenHolder reports whether a Lease that names a holder had reached the process before it sent its claim.
func (p *process) hasSeenHolder(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.seen[:p.claimed], []byte(`"holderIdentity":"`+name+`"`))
}

// recordSeen records bytes of Leases that have reached the process.
func (p *process) recordSeen(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, text...)
}

// seenStream is a stream of Leases that records what reaches the process.
type seenStream struct {
	io.ReadCloser
	process *process
}

func (s seenStream) Read(buffer []byte) (int, error) {
	n, err := s.ReadCloser.Read(buffer)
	s.process.recordSeen(buffer[:n])
	return n, err
}

// blockingLog is the log of the processes of a machine. Its writer blocks at times.
type blockingLog struct {
	slog.Handler
	machine *machine
}

func (l blockingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l blockingLog) Handle(context.Context, slog.Record) error {
	l.machine.mu.Lock()
	blocked := l.machine.logBlocked
	l.machine.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	return nil
}

func (m *machine) clock() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	steady := time.Duration(float64(time.Since(m.started)) * m.rate)
	return Reading{steady: steady, running: steady + m.set}
}

// waitWhileStopped waits while the process of m is stopped.
func (m *machine) waitWhileStopped() {
	m.mu.Lock()
	stopped := m.stopped
	m.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
}

// isNetworkCut reports whether the network of m is down.
func (m *machine) isNetworkCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isCut
}

// run runs processes on m until ctx ends.
func (m *machine) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.runProcess(ctx)
		time.Sleep(time.Second)
	}
}

// runProcess runs one process until it ends, or until ctx ends.
func (m *machine) runProcess(ctx context.Context) {
	m.world.mu.Lock()
	m.processes++
	p := &process{machine: m, name: fmt.Sprintf("p%d", m.processes), started: time.Now(), ended: make(chan struct{})}
	m.all[p.name] = p
	m.world.mu.Unlock()
	end := sync.OnceFunc(func() { close(p.ended) })
	defer end()
	p.fence = NewFence(m.clock, modelTiming())
	writer := kube.NewClientFromHandler(p.fence.Handler(wire.HandlerFunc(p.send)))
	var err error
	if p.elector, err = New(Config{
		Client: kube.NewClientFromHandler(p.fence.Transport()), Fence: p.fence,
		Namespace: "default", Name: "gadgets", Identity: p.name, Log: slog.New(blockingLog{slog.DiscardHandler, m}),
	}); err != nil {
		m.t.Error(err)
		return
	}
	m.mu.Lock()
	m.process = p
	m.mu.Unlock()

	electing, stopElecting := context.WithCancel(ctx)
	working, stopWorking := context.WithCancel(ctx)
	defer stopElecting()
	defer stopWorking()
	var parts sync.WaitGroup
	for i := range 2 {
		parts.Go(func() { p.work(working, writer, "work"+strconv.Itoa(i)) })
	}
	// Sooner or later the process crashes, or has to end in an orderly way.
	isOrderly := make(chan bool, 1)
	parts.Go(func() {
		runTime := 20*time.Second + m.below(3*time.Minute)
		select {
		case <-time.After(runTime):
		case <-electing.Done():
			return
		}
		orderly := m.drawOneIn(2)
		isOrderly <- orderly
		stopWorking()
		if !orderly {
			stopElecting()
		}
	})
	guarding, stopGuarding := context.WithCancel(context.Background())
	defer stopGuarding()
	over := make(chan struct{})
	go func() {
		if p.elector.WaitLost(guarding) {
			end()
			close(over)
		}
	}()
	lost := make(chan error, 1)
	go func() { lost <- p.elector.Run(electing) }()
	select {
	case <-over: // a process without its lease ends at once. Its elector may wait for the log
		stopWorking()
		stopElecting()
		parts.Wait()
		return
	case err := <-lost:
		if err != nil {
			p.fence.term.lose()
		}
		stopWorking()
		stopElecting()
		parts.Wait()
		return
	case <-working.Done():
	}
	parts.Wait() // the orderly end drains the work
	stopElecting()
	if err := <-lost; err != nil || ctx.Err() != nil {
		return
	}
	if <-isOrderly {
		m.waitWhileStopped()
		if err := p.elector.Release(ctx); err == nil && p.elector.candidate.hasLed {
			m.world.mu.Lock()
			m.releases++
			m.world.mu.Unlock()
		}
	}
}

// work writes one object, again and again, while the process leads.
func (p *process) work(ctx context.Context, c *kube.Client, name string) {
	select {
	case <-p.elector.Elected():
	case <-ctx.Done():
		return
	}
	for count := 1; ctx.Err() == nil; count++ {
		// The drain waits for a write that is under way.
		_, _ = kube.Namespaced[work](c, "default").Patch(context.WithoutCancel(ctx), name, kube.MergePatch(map[string]any{
			"spec": workSpec{Term: p.name, Count: count},
		}))
		select {
		case <-time.After(p.below(time.Second)):
		case <-ctx.Done():
		}
	}
}

// send sends a request as the transport of a process does. Whoever waits for an answer may give up. The network goes on.
func (p *process) send(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	p.waitWhileStopped()
	if !p.fence.term.isOpen() { // as a connection does
		return nil, ErrOver
	}
	type answer struct {
		response *wire.Response
		err      error
	}
	answers := make(chan answer, 1)
	lost := func(err error) (*wire.Response, error) {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Err: err, Unknown: r.Verb.IsWrite()}
	}
	if r.Resource.Plural == "leases" && r.Verb.IsWrite() && !hasBegun(p.elector) {
		p.mu.Lock()
		p.claimed = len(p.seen)
		p.mu.Unlock()
	}
	out, back := p.delay(), p.delay()
	isLost := p.drawOneIn(30)
	carry := func(ctx context.Context) {
		time.Sleep(out)
		if p.isNetworkCut() || isLost {
			return
		}
		response, err := p.server.Do(ctx, r)
		p.record(r, response)
		time.Sleep(back)
		if !p.isNetworkCut() {
			answers <- answer{response, err}
		}
	}
	if r.Verb == wire.VerbWatch {
		carry(ctx)
	} else {
		go carry(context.Background())
	}
	select {
	case a := <-answers:
		p.waitWhileStopped()
		return p.withCut(r, a.response), a.err
	case <-ctx.Done():
		p.waitWhileStopped()
		return lost(context.Cause(ctx))
	case <-time.After(30 * time.Second):
		return lost(errors.New("no answer"))
	}
}

// record records a write that the server has carried out.
func (p *process) record(r *wire.Request, response *wire.Response) {
	if r.Verb.IsWrite() && r.Resource.Plural == "leases" && response != nil {
		l, err := decode(response.Body)
		p.world.mu.Lock()
		p.recordLocked("%s has written the Lease: %s, %+v, %v", p.name, l.Metadata.ResourceVersion, recordOf(l), err)
		if !hasBegun(p.elector) {
			p.claim, _ = strconv.Atoi(l.Metadata.ResourceVersion)
		}
		p.world.mu.Unlock()
		return
	}
	if !r.Verb.IsWrite() || r.Resource.Plural != "works" || response == nil {
		return
	}
	var stored struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := kube.Unmarshal(response.Body, &stored); err != nil {
		p.t.Error(err)
		return
	}
	version, err := strconv.Atoi(stored.Metadata.ResourceVersion)
	if err != nil {
		p.t.Error(err)
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.writes[version] = p.name
}

// withCut returns response with a stream that ends when the network is cut. It records what reaches the process.
func (p *process) withCut(r *wire.Request, response *wire.Response) *wire.Response {
	if response == nil {
		return nil
	}
	if r.Resource.Plural == "leases" {
		p.recordSeen(response.Body)
	}
	if response.BodyReader == nil {
		return response
	}
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	p.streams[response.BodyReader] = true
	recorded := *response
	recorded.BodyReader = seenStream{response.BodyReader, p}
	return &recorded
}

// fail lets the machine, its network, its process and its log fail until ctx ends.
func (m *machine) fail(ctx context.Context) {
	wait := func(d time.Duration) {
		select {
		case <-time.After(m.below(d)):
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		wait(time.Minute)
		m.world.mu.Lock()
		kind := m.random.IntN(4)
		m.world.mu.Unlock()
		m.mu.Lock()
		switch kind {
		case 0: // somebody sets the clock
			m.set += m.below(2*time.Minute) - time.Minute
			m.mu.Unlock()
		case 1: // the network is down
			m.isCut = true
			for s := range m.streams {
				s.Close()
			}
			clear(m.streams)
			m.mu.Unlock()
			wait(40 * time.Second)
			m.mu.Lock()
			m.isCut = false
			m.mu.Unlock()
		case 2: // the process is stopped
			m.stopped = make(chan struct{})
			stopped := m.stopped
			m.mu.Unlock()
			wait(40 * time.Second)
			m.mu.Lock()
			m.stopped = nil
			m.mu.Unlock()
			close(stopped)
		case 3: // nobody reads the log
			m.logBlocked = make(chan struct{})
			blocked := m.logBlocked
			m.mu.Unlock()
			wait(time.Minute)
			m.mu.Lock()
			m.logBlocked = nil
			m.mu.Unlock()
			close(blocked)
		}
	}
}

// editLeases changes and deletes the Lease by hand until ctx ends.
func (w *world) editLeases(ctx context.Context) {
	api := requests{w.server.Client(), "default", "gadgets"}
	for {
		select {
		case <-time.After(w.below(2 * time.Minute)):
		case <-ctx.Done():
			return
		}
		l, err := api.get(ctx)
		if err != nil {
			continue // there is none
		}
		w.mu.Lock()
		kind := w.random.IntN(5)
		w.edits++
		w.recordLocked("edit %d by hand of a Lease of version %s, %+v", kind, l.Metadata.ResourceVersion, recordOf(l))
		w.mu.Unlock()
		switch kind {
		case 0:
			err = deleteLease(api, l)
			w.mu.Lock()
			w.deletions = append(w.deletions, w.server.Version())
			w.mu.Unlock()
		case 1:
			err = editLease(func(r *record) { r.holder = "" })(api, l)
		case 2:
			err = editLease(func(r *record) { r.holder = "somebody" })(api, l)
		case 3:
			err = editLease(func(r *record) { r.renewed++ })(api, l)
		case 4:
			l.Metadata.Labels = map[string]string{"edited": strconv.Itoa(w.edits)}
			_, err = api.replace(ctx, l)
		}
		if err != nil && ctx.Err() == nil {
			w.t.Error(err)
		}
	}
}

// mayOverlap reports whether the term of p may begin before the end of the term of the earlier process: somebody has
// deleted the Lease between the claims of the two, and p had not seen the earlier one hold the lease before it sent its
// own claim.
func (w *world) mayOverlap(earlier, p *process) bool {
	isDeleted := slices.ContainsFunc(w.deletions, func(version int) bool { return earlier.claim < version && version < p.claim })
	return isDeleted && !p.hasSeenHolder(earlier.name)
}

// leaders returns the processes whose term is valid by their own clocks. It changes no term, as a call of a method
// of the term would do.
func leaders(machines []*machine) (all []*process) {
	for _, m := range machines {
		m.mu.Lock()
		p := m.process
		m.mu.Unlock()
		if p == nil || p.hasEnded() {
			continue
		}
		term, now := p.fence.term, m.clock()
		term.mu.Lock()
		isLate := now.longestSince(term.sent) >= term.timing.Deadline
		isLost := term.phase == afterTerm || term.phase == inTerm && isLate
		if term.phase == inTerm && !isLate {
			all = append(all, p)
		}
		term.mu.Unlock()
		p.checkEnd(isLost)
	}
	return all
}

// checkEnd checks that the process does not run for long without its lease, whatever blocks.
func (p *process) checkEnd(isLost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !isLost:
		p.lostAt = time.Time{} // somebody has set the clock back
	case p.lostAt.IsZero():
		p.lostAt = time.Now()
	case time.Since(p.lostAt) > longestEnd:
		p.t.Errorf("%s has lost its lease, and still runs after %s", p.name, time.Since(p.lostAt))
		p.lostAt = time.Now()
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// TestModel runs three replicas. Their networks delay, lose and cut requests and answers. Their clocks run at different
// rates and are set. Their processes are stopped, crash and end. The writers of their logs block. Somebody deletes,
// empties and edits the Lease by hand. At no time are two terms valid, no write of a term follows the first write of
// the next one, a process ends within two seconds after the loss of its lease, and when nothing fails any more there
// is a leader. The only exception is a process that could not know of a leader, because the Lease was deleted.
//
// YARE_MODEL_RUNS is how many seeds are run, YARE_MODEL_SEED the first of them.
func TestModel(t *testing.T) {
	t.Parallel()
	runs := uint64(24)
	if n, err := strconv.ParseUint(os.Getenv("YARE_MODEL_RUNS"), 10, 64); err == nil {
		runs = n
	}
	first, _ := strconv.ParseUint(os.Getenv("YARE_MODEL_SEED"), 10, 64) // 0 without the variable
	for seed := first; seed < first+runs; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
		})
	}
}

func runModel(t *testing.T, seed uint64) {
	w := &world{t: t, started: time.Now(), server: fakeserver.New(), random: rand.New(rand.NewPCG(seed, 1)), writes: make(map[int]string), all: make(map[string]*process)}
	w.server.IgnoreUpdates()
	for i := range 2 {
		o := &work{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "work" + strconv.Itoa(i)}}
		if _, err := kube.Everywhere[work](w.server.Client()).Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	failing, stopFailing := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.editLeases(failing) })
	var machines []*machine
	for i := range 3 {
		m := &machine{world: w, started: time.Now(), rate: 0.97 + 0.03*float64(i), streams: make(map[io.Closer]bool)}
		machines = append(machines, m)
		running.Go(func() { m.run(ctx) })
		running.Go(func() { m.fail(failing) })
	}
	check := func(d time.Duration) {
		for began := time.Now(); time.Since(began) < d; time.Sleep(50 * time.Millisecond) {
			all := leaders(machines)
			w.mu.Lock()
			slices.SortFunc(all, func(p, q *process) int { return p.claim - q.claim })
			for i, p := range all {
				for _, earlier := range all[:i] {
					if !w.mayOverlap(earlier, p) {
						t.Errorf("seed %d: %s and %s lead after %s", seed, earlier.name, p.name, time.Since(machines[0].started))
						d = 0
					}
				}
			}
			w.mu.Unlock()
		}
	}
	check(8 * time.Minute)
	stopFailing()
	w.mu.Lock()
	w.calm = true
	before := len(w.writes)
	w.mu.Unlock()
	// The last stopped process, the expiry of its lease, and the attempt of another one.
	check(2 * time.Minute)
	cancel()
	running.Wait()
	time.Sleep(time.Minute) // for messages that are under way
	w.checkWrites(seed, before)
	if t.Failed() {
		t.Log(strings.Join(w.trace, "\n"))
	}
}

// checkWrites checks that no write of a term follows a write of a later one. The order of the terms is that of their
// claims: the answer to a claim can be so slow that a later term, which may overlap, writes first.
func (w *world) checkWrites(seed uint64, before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var versions []int
	for version := range w.writes {
		versions = append(versions, version)
	}
	slices.Sort(versions)
	// terms holds the processes that have written so far.
	var terms []*process
	reported := make(map[[2]*process]bool)
	for _, version := range versions {
		p := w.all[w.writes[version]]
		if !slices.Contains(terms, p) {
			terms = append(terms, p)
		}
		for _, later := range terms {
			pair := [2]*process{p, later}
			if p.claim < later.claim && !reported[pair] && !w.mayOverlap(p, later) {
				reported[pair] = true
				w.t.Errorf("seed %d: a write of %s at version %d follows a write of %s", seed, p.name, version, later.name)
			}
		}
	}
	if len(terms) < 3 || len(versions) <= before {
		w.t.Errorf("seed %d: %d terms, and %d of %d writes after the failures", seed, len(terms), len(versions)-before, len(versions))
	}
	w.t.Logf("seed %d: %d writes, %d terms of %d processes, %d releases, %d edits by hand",
		seed, len(versions), len(terms), w.processes, w.releases, w.edits)
}
