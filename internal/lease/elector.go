package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
)

// Config describes an [Elector]. All fields but KindsHash and IsReported are required.
type Config struct {
	// Client is a client of [Fence.Transport].
	Client *kube.Client
	Fence  *Fence
	// Namespace and Name identify the Lease.
	Namespace, Name string
	// KindsHash stands for the kinds that the program reconciles. Its leader writes the hash into the label
	// leases.yare.dev/kinds of the Lease. Without a hash the label stays as it is.
	KindsHash string
	// Identity names this process, and no other process ever.
	Identity string
	Log      *slog.Logger
	// IsReported reports whether the log has the reason of an error already. It may be nil.
	IsReported func(error) bool
}

// Elector is one candidate for a lease. It reads, claims, renews and releases the Lease. Its [candidate] decides
// when.
//
// An example with the default times, from the start of a replica:
//
//	 0 s  the watch shows that nobody holds the lease. The elector sends a claim, and leads from its answer on
//	 4 s  it renews the lease (Timing.Period), and then every four seconds
//	16 s  a renewal fails. The elector repeats it about every second
//	32 s  20 s after the last successful renewal was sent (Timing.Deadline), the lease is lost and Run returns
//
// The watch goes on during the term. Somebody deletes the Lease at 10 s, so the watch shows it at 10 s. The elector
// reads the Lease from the server, and the lease is lost at once.
type Elector struct {
	Config
	leases requests
	clock  Clock
	timing Timing
	// elected is closed when the term begins.
	elected chan struct{}
	// attempted is closed when the first attempt to take the lease has ended, or was not made because somebody holds the
	// lease.
	attempted chan struct{}
	// termVersion is what TermVersion returns once elected is closed. Nothing changes it then.
	termVersion string
	// hasSeen is true once the Lease, or its absence, was read.
	hasSeen atomic.Bool

	// candidate is used by Run, and after Run by Release.
	candidate candidate
	// loggedWait is the last wait for another replica that the log has.
	loggedWait loggedWait
	failures   failures
}

// New returns an Elector, or an error if c is invalid.
func New(c Config) (*Elector, error) {
	if c.Namespace == "" || c.Name == "" {
		return nil, fmt.Errorf("the leader election has no namespace or no name: %q", c.Namespace+"/"+c.Name)
	}
	return &Elector{
		Config: c, leases: requests{c.Client, c.Namespace, c.Name}, clock: c.Fence.term.clock, timing: c.Fence.term.timing,
		elected: make(chan struct{}), attempted: make(chan struct{}),
		candidate: candidate{
			namespace: c.Namespace, name: c.Name, identity: c.Identity, kindsHash: c.KindsHash, timing: c.Fence.term.timing,
			ownRecords: make(map[record]Reading),
		},
		failures: failures{log: c.Log, isReported: c.IsReported},
	}, nil
}

// Elected returns a channel that is closed when the term of this process begins.
func (e *Elector) Elected() <-chan struct{} { return e.elected }

// Attempted returns a channel that is closed when this process has tried to take the lease for the first time, or has
// seen that somebody holds it. A list that begins afterwards shows all writes of former leaders, if the term has begun
// by then.
func (e *Elector) Attempted() <-chan struct{} { return e.attempted }

// TermVersion returns a resource version that is later than all writes of former leaders, but for those that the limits
// of the fence leave (see [Fence]). It is empty before the term.
//
// An example. The former leader writes at the versions 30 to 40, and releases the Lease at 41. This process claims the
// Lease at 52. The version is 41, because a leader releases the Lease after its last write. If the former leader has
// crashed, its last renewal was at 35, and it wrote until 40. Nobody knows that 40 was its last write, so the version
// is 52.
func (e *Elector) TermVersion() string {
	select {
	case <-e.elected:
		return e.termVersion
	default:
		return ""
	}
}

// HasSeen reports whether the state of the Lease is known. If so, the account may read the Lease.
func (e *Elector) HasSeen() bool { return e.hasSeen.Load() }

// IsLeading reports whether this process leads: its term has begun, and is not over.
func (e *Elector) IsLeading() bool { return e.Fence.term.isValid() }

// IsLost reports whether the lease is lost. An orderly release is no loss.
func (e *Elector) IsLost() bool { return e.Fence.term.isLost() }

// WaitLost waits until the lease is lost, and returns within a second. It returns false if ctx ends before. Run may
// return later than WaitLost, for example because the writer of the log blocks.
func (e *Elector) WaitLost(ctx context.Context) bool { return e.Fence.term.waitLost(ctx) }

// Run waits for the lease, begins the term, and renews the lease until ctx ends. Then it returns nil, and
// leaves the lease unchanged: see [Elector.Release]. An error means that the lease is lost and the fence is
// closed. The process must end then. Otherwise work of its term goes on.
func (e *Elector) Run(ctx context.Context) error {
	began := time.Now()
	states := make(chan *Lease)
	var watching sync.WaitGroup
	defer watching.Wait()
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching.Go(func() { e.watch(watchCtx, states) })
	endFirstAttempt := sync.OnceFunc(func() { close(e.attempted) })
	defer endFirstAttempt()
	if !e.waitForLease(ctx, states, endFirstAttempt) {
		return nil
	}
	if !e.Fence.term.extend(e.candidate.lastRenewal) {
		return e.lose(errors.New("the server took too long to answer the claim"))
	}
	close(e.elected)
	endFirstAttempt()
	e.Log.Info("this replica leads", "lease", e.String(), "identity", e.Identity,
		"waited", time.Since(began).Round(time.Millisecond), "transitions", recordOf(e.candidate.seen).transitions)
	return e.lead(ctx, states)
}

// String returns the name of the Lease.
func (e *Elector) String() string { return e.Namespace + "/" + e.Name }

// waitForLease waits until this candidate has acquired the lease. states are the states that the watch shows. It
// returns false if ctx ends before. It calls endFirstAttempt after each attempt that fails, and when somebody else
// holds the lease.
func (e *Elector) waitForLease(ctx context.Context, states <-chan *Lease, endFirstAttempt func()) bool {
	var pause time.Duration // before the next attempt
	for {
		wait := max(e.candidate.untilFree(e.clock()), pause)
		select {
		case l := <-states:
			e.observe(l)
			if e.candidate.untilFree(e.clock()) > 0 {
				endFirstAttempt()
			}
			pause = 0
			continue
		case <-ctx.Done():
			return false
		case <-time.After(wait):
			pause = 0
		}
		if e.candidate.untilFree(e.clock()) > 0 {
			continue // the timer was faster than the clock
		}
		isAcquired, err := e.acquire(ctx, states)
		switch {
		case isAcquired:
			return true
		case err != nil:
			pause = jitter(e.timing.Period)
		}
		if err != nil || e.candidate.untilFree(e.clock()) > 0 {
			endFirstAttempt()
		}
		e.failures.record(ctx, err)
	}
}

// watch sends the states of the Lease to states, until ctx ends.
func (e *Elector) watch(ctx context.Context, states chan<- *Lease) {
	isPresent := false
	for change, err := range follow.Changes(ctx, e.Client, e.leases.stream()) {
		var l *Lease
		switch {
		case err != nil:
			continue // acquire gets the error too, if it lasts
		case change.Type == follow.ChangeAdded, change.Type == follow.ChangeModified:
			if l, err = decode(change.Object); err != nil {
				continue
			}
			isPresent = true
		case change.Type == follow.ChangeDeleted, change.Type == follow.ChangeListed && !isPresent:
			isPresent = false
		default:
			continue
		}
		select {
		case states <- l:
		case <-ctx.Done():
			return
		}
	}
}

// observe records a state of the Lease that was read. l is nil if the Lease does not exist.
func (e *Elector) observe(l *Lease) {
	now := e.clock()
	e.candidate.observe(l, now)
	e.hasSeen.Store(true)
	e.logWait(e.candidate.untilFree(now))
}

// loggedWait is what a line of the log about a standby depends on. A renewal leads to no other line.
type loggedWait struct {
	holder          string
	durationSeconds int32
}

// logWait logs that this replica stands by for the time wait, unless somebody renews the lease. It logs nothing if the
// lease can be taken, or if the log has the holder and the duration already.
func (e *Elector) logWait(wait time.Duration) {
	r := recordOf(e.candidate.seen)
	reason := loggedWait{r.holder, r.durationSeconds}
	if wait == 0 || reason == e.loggedWait {
		return
	}
	e.loggedWait = reason
	text := "standing by: another replica leads"
	if r.holder == "" {
		text = "standing by: somebody has deleted or emptied the Lease, and its former holder may still lead"
	}
	attributes := []any{
		"lease", e.String(), "holder", r.holder, "unless_renewed_until", time.Now().Add(wait).Round(time.Second),
	}
	if said := time.Duration(r.durationSeconds) * time.Second; said > longestCounted {
		e.Log.Warn(text+"; the Lease names a longer duration than any that counts",
			append(attributes, "duration", said, "counted", longestCounted)...)
		return
	}
	e.Log.Info(text, attributes...)
}

// acquire reads the Lease from the server, and takes it if it is free. It returns whether this candidate has the
// lease now. It takes nothing if states has shown something meanwhile, such as a holder whose Lease was deleted.
func (e *Elector) acquire(ctx context.Context, states <-chan *Lease) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timing.attempt())
	defer cancel()
	live, err := e.leases.get(ctx)
	if err != nil && !kube.IsNotFound(err) {
		return false, err
	}
	e.observe(live)
	select {
	case l := <-states:
		e.observe(l)
		return false, nil
	default:
	}
	if e.candidate.untilFree(e.clock()) > 0 {
		return false, nil
	}
	claim := e.candidate.claim(time.Now())
	sent := e.clock()
	e.candidate.rememberSent(claim, sent)
	var stored *Lease
	if live == nil {
		stored, err = e.leases.create(ctx, claim)
	} else {
		stored, err = e.leases.replace(ctx, claim)
	}
	if err != nil {
		return false, err
	}
	e.termVersion = stored.Metadata.ResourceVersion
	if e.candidate.isReleased() {
		e.termVersion = live.Metadata.ResourceVersion
	}
	e.candidate.rememberStored(stored, sent)
	return true, nil
}

// lead renews the lease until ctx ends, or until the lease is lost, and returns the error of the loss. states are
// the states that the watch shows. They may be older than what the elector knows. Therefore a state that this
// process has not written only makes the elector read the Lease from the server.
func (e *Elector) lead(ctx context.Context, states <-chan *Lease) error {
	var err error // of the last attempt
	for attempt := time.NewTimer(e.untilRenewal()); ; {
		isRenewalDue := false
		select {
		case <-ctx.Done():
			return nil
		case <-e.Fence.term.lost:
		case <-attempt.C:
			isRenewalDue = true
		case l := <-states:
			if e.candidate.hasSent(l) {
				continue
			}
		}
		if e.candidate.timeLeft(e.clock()) <= 0 || e.IsLost() {
			return e.lose(cmp.Or(err, errStopped))
		}
		if isRenewalDue {
			err = e.renew(ctx)
		} else {
			err = e.examine(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if _, isLost := errors.AsType[*lostError](err); isLost {
			return e.lose(err)
		}
		e.failures.record(ctx, err)
		wait := e.untilRenewal()
		if err != nil {
			wait = min(e.candidate.timeLeft(e.clock()), jitter(e.timing.Period/4))
		}
		attempt.Reset(wait)
	}
}

// untilRenewal returns the time until the next renewal, if the last one was successful.
func (e *Elector) untilRenewal() time.Duration {
	return max(e.timing.Period-e.clock().longestSince(e.candidate.lastRenewal), e.timing.Period/10)
}

// errStopped is the reason of a loss without an error of a request.
var errStopped = errors.New("this process was stopped, or could not renew it in time")

// lostError is the error of a lost lease, with the reason of the loss.
type lostError struct{ reason string }

func (e *lostError) Error() string { return e.reason }

// lose closes the fence, and returns the error of the end of the term.
func (e *Elector) lose(reason error) error {
	e.Fence.term.lose()
	return fmt.Errorf("the lease %s is lost: its last renewal was sent %s ago: %w",
		e, e.clock().longestSince(e.candidate.lastRenewal).Round(time.Millisecond), reason)
}

// renew renews the lease. An error other than a *lostError means that the renewal failed.
func (e *Elector) renew(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, min(e.candidate.timeLeft(e.clock()), e.timing.attempt()))
	defer cancel()
	claim := e.candidate.claim(time.Now())
	sent := e.clock()
	e.candidate.rememberSent(claim, sent)
	stored, err := e.leases.replace(bounded, claim)
	switch {
	case err == nil:
		e.candidate.rememberStored(stored, sent)
		return e.extend()
	case kube.IsConflict(err), kube.IsNotFound(err):
		before := e.candidate.lastRenewal
		if err := e.examine(bounded); err != nil {
			return err
		}
		if e.candidate.lastRenewal == before {
			return errChanged // the next renewal has the new version
		}
		return nil
	case bounded.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf(
			"the network, a busy server, or a webhook that covers Leases and does not answer may be the cause: %w", err)
	default:
		return err
	}
}

// extend extends the term to what the candidate knows.
func (e *Elector) extend() error {
	if !e.Fence.term.extend(e.candidate.lastRenewal) {
		return &lostError{"the server took too long to answer the renewal"}
	}
	return nil
}

// errChanged is the error of a renewal that was refused because somebody else has changed the Lease,
// such as its labels.
var errChanged = errors.New("somebody has changed the Lease, but not its record")

// examine reads the Lease from the server, because somebody else may have changed it. A *lostError means that the
// server does not have a record that this process has sent.
func (e *Elector) examine(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.timing.attempt())
	defer cancel()
	live, err := e.leases.get(ctx)
	switch {
	case kube.IsNotFound(err):
		return &lostError{"somebody has deleted the Lease"}
	case err != nil:
		return err
	case e.candidate.acceptFound(live):
		return e.extend()
	case recordOf(live).holder == e.Identity:
		return &lostError{"it names this process in a record that this process has not sent: somebody has edited the Lease, or this process runs a second time, as in a copy of its machine"}
	}
	return &lostError{fmt.Sprintf("it is held by %q", cmp.Or(recordOf(live).holder, "nobody"))}
}

// Release ends the term, after Run has returned nil, and frees the lease for the next candidate. It does
// nothing without a term. If writes of the term may still be carried out, the lease is left to expire, which
// is no error.
func (e *Elector) Release(ctx context.Context) error {
	if !e.candidate.hasLed {
		return nil
	}
	if !e.Fence.term.release(ctx) {
		e.Log.Info(
			"the lease is left to expire, because writes of this replica may still be carried out", "lease", e.String())
		return nil
	}
	// The last renewal may have no answer, so that the version is not known.
	for attempt := 1; ; attempt++ {
		_, err := e.leases.replace(ctx, e.candidate.release(time.Now()))
		if err == nil {
			e.Log.Info("the lease is released", "lease", e.String())
			return nil
		}
		if !kube.IsConflict(err) || attempt == 2 {
			return fmt.Errorf("release the lease: %w", err)
		}
		live, err := e.leases.get(ctx)
		if err != nil || !e.candidate.acceptFound(live) {
			return kube.IgnoreNotFound(err)
		}
	}
}

// jitter returns a time around d, so that replicas do not act at the same moment.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// failures logs why requests about the lease fail, each reason once, and the end of the failures.
type failures struct {
	log        *slog.Logger
	isReported func(error) bool
	// logged is the text of the last reason that was logged. It is empty if all is well.
	logged string
}

// record records how an attempt ended.
func (f *failures) record(ctx context.Context, err error) {
	switch {
	case err == nil && f.logged != "":
		f.logged = ""
		f.log.Info("the leader election works again")
	case err == nil, ctx.Err() != nil, f.isReported != nil && f.isReported(err):
	case kube.IsConflict(err), kube.IsAlreadyExists(err), errors.Is(err, errChanged):
		// Somebody else has written the Lease. The next attempt sees how.
	case err.Error() != f.logged:
		f.logged = err.Error()
		f.log.Error("the leader election fails; will try again", "error", err)
	}
}
