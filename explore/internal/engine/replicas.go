package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// replicas are the replicas of the program of a run. Its methods are safe for concurrent use.
type replicas struct {
	launcher Launcher
	proxy    *faults.InjectingProxy
	trace    *trace
	// election is the election of the program, or nil if the program elects no leader, or if that is not known yet.
	election *election
	// settings are the settings of all processes, without their connection.
	settings processSettings
	// releaseLease releases the Lease of a name.
	releaseLease func(ctx context.Context, name string) error
	// mayRestart is true if a program that ends at its start is started again.
	mayRestart bool
	// outages counts the faults because of which the control plane may be down. Replicas are not supervised then.
	outages atomic.Int32

	mu  sync.Mutex
	all []*replica
	// processCount counts the processes so far.
	processCount int
	// numbers are the numbers of the replicas, by the sessions of their processes.
	numbers map[string]int
	// isRestartDue is true while a program that has crashed waits for its restart.
	isRestartDue bool
	// isHandingOver is true while a fault takes the lease from a leader.
	isHandingOver bool
	// released is the session whose lease was released last, because its process had ended.
	released string
}

func newReplicas(
	l Launcher, p *faults.InjectingProxy, t *trace, e *election, s processSettings,
	releaseLease func(context.Context, string) error,
) *replicas {
	return &replicas{
		launcher: l, proxy: p, trace: t, election: e, settings: s, releaseLease: releaseLease, numbers: make(map[string]int),
	}
}

// pollInterval is the time between two looks at who leads.
const pollInterval = 100 * time.Millisecond

// start starts the program: one replica, and a standby if a fault takes the lease from a leader.
func (r *replicas) start(ctx context.Context, needsStandby bool) error {
	first, err := r.addReplica()
	if err != nil || !needsStandby {
		return err
	}
	election := r.election
	if election == nil {
		return errors.New("the schedule has a fault of a leader, and the program elects none")
	}
	err = r.waitForRequests(ctx, first,
		func(requests []proxy.RequestRecord) bool { return election.leader(requests) == first.session.Name() })
	if err != nil {
		return err
	}
	second, err := r.addReplica()
	if err != nil {
		return err
	}
	return r.waitForRequests(ctx, second, func(requests []proxy.RequestRecord) bool {
		return slices.ContainsFunc(requests, func(q proxy.RequestRecord) bool {
			return q.Session == second.session.Name() && q.Point.Resource == proxy.Leases
		})
	})
}

// addReplica starts another replica.
func (r *replicas) addReplica() (*replica, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := &replica{number: len(r.all) + 1}
	r.all = append(r.all, rep)
	return rep, r.startReplicaLocked(rep)
}

// waitForRequests waits until a condition on the requests of the run holds, or a replica has ended. It
// gives up after some time, because the rest of the run shows what is wrong.
func (r *replicas) waitForRequests(ctx context.Context, rep *replica, holds func([]proxy.RequestRecord) bool) error {
	for until := time.Now().Add(r.election.takeOverTime()); time.Now().Before(until) && rep.isRunning(); {
		if holds(r.proxy.Requests()) {
			return nil
		}
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// startReplicaLocked starts a process of a replica.
func (r *replicas) startReplicaLocked(rep *replica) error {
	r.processCount++
	session, err := r.proxy.NewSession(fmt.Sprint("process-", r.processCount))
	if err != nil {
		return err
	}
	settings := r.settings
	settings.config, settings.kubeconfig = session.Config(), filepath.Join(settings.folder,
		fmt.Sprintf("kubeconfig-%d", r.processCount))
	if err := os.WriteFile(settings.kubeconfig, session.Kubeconfig(), 0o600); err != nil {
		return err
	}
	r.numbers[session.Name()] = rep.number
	rep.session, rep.mayEnd, rep.restartAt = session, false, time.Time{}
	rep.process, err = r.launcher.launch(settings)
	return err
}

// startLocked starts a process of each replica.
func (r *replicas) startLocked() error {
	r.isRestartDue = false
	for _, rep := range r.all {
		if err := r.startReplicaLocked(rep); err != nil {
			return err
		}
	}
	return nil
}

// killLocked kills the processes of all replicas.
func (r *replicas) killLocked() {
	for _, rep := range r.all {
		rep.kill()
	}
}

// crash kills the processes of the program. The program starts again at once if restartsNow is true, or else when
// restart is called.
func (r *replicas) crash(why string, restartsNow bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace.record(finding.Event{Lane: finding.Operator, Text: why, IsFault: true})
	r.killLocked()
	if !restartsNow {
		r.isRestartDue = true
		return nil
	}
	return r.startLocked()
}

// replaceProcesses kills the processes of the program, and starts others. This is no fault of the schedule.
func (r *replicas) replaceProcesses(why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace.record(finding.Event{Lane: finding.Operator, Text: why})
	r.killLocked()
	return r.startLocked()
}

// restart starts a program that waits for its restart.
func (r *replicas) restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isRestartDue {
		return nil
	}
	r.trace.record(finding.Event{Lane: finding.Operator, Text: "the program starts again"})
	return r.startLocked()
}

// isDown reports whether no process of the program runs because of a crash.
func (r *replicas) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isRestartDue
}

// isWorking reports whether a reconcile is under way in a replica.
func (r *replicas) isWorking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.all, func(rep *replica) bool { return rep.isRunning() && rep.process.isWorking() })
}

// exitError returns why the program ended by itself, or nil. A replica that has lost its lease may end.
func (r *replicas) exitError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range r.all {
		if rep.process != nil && !rep.isRunning() && !r.hasLostLeaseLocked(rep) && !r.hasEndedAtStartLocked(rep) {
			return rep.process.err()
		}
	}
	return nil
}

// hasLostLeaseLocked reports whether a replica may have ended because it has lost its lease.
func (r *replicas) hasLostLeaseLocked(rep *replica) bool {
	e := r.election
	return e != nil && (rep.mayEnd || e.hasLost(rep.session.Name(), r.proxy.Requests()))
}

const (
	// maxStartFailures is how often a replica may end at its start, one time after the other.
	maxStartFailures = 5
	// startBackoff is the wait before the first restart of a replica that has ended at its start. It doubles each time.
	startBackoff = 500 * time.Millisecond
)

// hasEndedAtStartLocked reports whether a replica has ended before its first write, in a run with faults, and may be
// started again: a fault can keep a program from its start, and a kubelet starts the program again.
func (r *replicas) hasEndedAtStartLocked(rep *replica) bool {
	if !r.mayRestart || rep.startFailures >= maxStartFailures {
		return false
	}
	return !slices.ContainsFunc(r.proxy.Requests(), func(q proxy.RequestRecord) bool {
		return q.Session == rep.session.Name() && q.Point.IsWrite() && isPoint(q)
	})
}

// restartFailedStarts starts replicas again that have ended at their start, after a wait. It reports whether one waits.
func (r *replicas) restartFailedStarts() (isWaiting bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range r.all {
		if rep.process == nil || rep.isRunning() || r.hasLostLeaseLocked(rep) || !r.hasEndedAtStartLocked(rep) {
			continue
		}
		if rep.restartAt.IsZero() {
			rep.restartAt = time.Now().Add(startBackoff << rep.startFailures)
		}
		if time.Now().Before(rep.restartAt) {
			isWaiting = true
			continue
		}
		rep.startFailures++
		r.trace.record(finding.Event{Lane: finding.Operator, Text: "the program, which has ended at its start, starts again"})
		rep.kill()
		if err := r.startReplicaLocked(rep); err != nil {
			return false, err
		}
	}
	return isWaiting, nil
}

// supervise restarts replicas that have ended because they have lost their lease, as a kubelet
// does. If the lease belongs to a process that a crash has ended, it releases the lease, so that the program
// need not wait until the lease expires.
func (r *replicas) supervise(ctx context.Context) error {
	if r.election == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isHandingOver || r.isRestartDue || r.outages.Load() > 0 {
		return nil
	}
	for _, rep := range r.all {
		if rep.process == nil || rep.isRunning() || !r.hasLostLeaseLocked(rep) {
			continue
		}
		r.trace.record(finding.Event{
			Lane: finding.Operator,
			Text: fmt.Sprintf("replica %d, which has lost the lease, has ended and starts again", rep.number),
		})
		rep.kill()
		if err := r.startReplicaLocked(rep); err != nil {
			return err
		}
	}
	return r.releaseLeaseLocked(ctx)
}

// releaseLeaseLocked releases the lease if it belongs to a process that has ended.
func (r *replicas) releaseLeaseLocked(ctx context.Context) error {
	writes := r.election.leaseWrites(r.proxy.Requests())
	if len(writes) == 0 || r.hasLeaderLocked() {
		return nil
	}
	last := writes[len(writes)-1]
	if last.Holder == "" || last.Session == r.released {
		return nil
	}
	if err := r.releaseLease(ctx, last.Name); err != nil {
		return err
	}
	r.released = last.Session
	return nil
}

// callInOutage calls work while the control plane may be down. Replicas are not supervised meanwhile.
func (r *replicas) callInOutage(work func() error) error {
	r.outages.Add(1)
	defer r.outages.Add(-1)
	return work()
}

// advanceClock lets time pass for the program. It reports false if the program has the time of the machine.
func (r *replicas) advanceClock(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range r.all {
		if rep.process == nil {
			continue
		}
		r.trace.record(finding.Event{Lane: finding.Operator, Text: "time passes for the program"})
		if advanced, err := rep.process.advance(ctx); !advanced || err != nil {
			return advanced, err
		}
	}
	return true, nil
}

// hasLeaderLocked reports whether a replica that runs has the lease.
func (r *replicas) hasLeaderLocked() bool {
	session := r.election.leader(r.proxy.Requests())
	return slices.ContainsFunc(r.all, func(rep *replica) bool {
		return rep.isRunning() && rep.session.Name() == session
	})
}

// isRestPrevented reports whether the run cannot be at rest, although nothing may happen for long: a fault
// takes the lease from a leader, no replica leads yet, or the control plane is down.
func (r *replicas) isRestPrevented() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isHandingOver || r.outages.Load() > 0 {
		return true
	}
	return r.election != nil && !r.isRestartDue && !r.hasLeaderLocked()
}

// handOver waits until another replica leads in place of the replica of an armed fault, and ends the fault. It kills
// the replica before if isKilled is true, and starts the replica again after. It returns early if the channel over is
// closed. Error: a [handOverError] if no other replica takes the lease in time.
func (r *replicas) handOver(armed *faults.Armed, isKilled bool, over <-chan struct{}) error {
	session := armed.Session()
	former := r.beginHandOver(session, isKilled)
	defer r.endHandOver()
	defer armed.End()
	limit := r.election.takeOverTime()
	for until := time.Now().Add(limit); ; {
		if leader := r.election.leader(r.proxy.Requests()); leader != "" && leader != session.Name() {
			break
		}
		if time.Now().After(until) {
			return &handOverError{fmt.Sprintf("No other replica takes the lease within %s, although it lasts for %s only.",
				limit, r.election.duration)}
		}
		select {
		case <-over:
			return nil
		case <-time.After(pollInterval):
		}
	}
	if !isKilled || former == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace.record(finding.Event{Lane: finding.Operator, Text: fmt.Sprintf("replica %d starts again", former.number)})
	return r.startReplicaLocked(former)
}

// beginHandOver records that the leader loses its lease, and kills the leader if isKilled is true. It
// returns the replica of the session, or nil.
func (r *replicas) beginHandOver(session *proxy.Session, isKilled bool) *replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isHandingOver = true
	for _, rep := range r.all {
		if rep.session == session {
			rep.mayEnd = true
			if isKilled {
				rep.kill()
			}
			return rep
		}
	}
	return nil
}

func (r *replicas) endHandOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isHandingOver = false
}

// numberOf returns the number of the replica of a session. It is 0 if the run has one replica only.
func (r *replicas) numberOf(session string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < 2 {
		return 0
	}
	return r.numbers[session]
}

// end ends all replicas. Programs whose statements are counted end in order.
func (r *replicas) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range r.all {
		if rep.process != nil {
			rep.process.writeCoverage()
		}
	}
	r.killLocked()
}

// handOverError is a problem that the hand-over of a lease has shown.
type handOverError struct{ text string }

// Error implements error.
func (e *handOverError) Error() string { return e.text }

// replica is one of the programs of a run that can stand in for one another. It has one process at a time.
type replica struct {
	// number counts the replicas of the run from 1.
	number int
	// session is the connection of process. Both are nil while the replica is down.
	session *proxy.Session
	process process
	// startFailures counts the times that the replica has ended at its start. restartAt is when it starts again, or zero.
	startFailures int
	restartAt     time.Time
	// mayEnd is true for a process whose lease a fault has taken. The process may end by itself.
	mayEnd bool
}

// isRunning reports whether the replica has a process that has not ended by itself.
func (r *replica) isRunning() bool {
	if r.process == nil {
		return false
	}
	select {
	case <-r.process.ended():
		return false
	default:
		return true
	}
}

// kill cuts the process off from the server, and kills it.
func (r *replica) kill() {
	if r.session != nil {
		r.session.CutOff()
	}
	if r.process != nil {
		r.process.kill()
	}
	r.session, r.process = nil, nil
}
