package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// replica is one of the programs of a run that can stand in for one another. It has one process at a time.
type replica struct {
	// number counts the replicas of the run from 1.
	number int
	// session is the connection of process. Both are nil while the replica is down.
	session *proxy.Session
	process process
	// mayEnd is true for a process whose lease a fault has taken. The process may end by itself.
	mayEnd bool
}

// isRunning reports whether the replica has a process that has not ended by itself.
func (p *replica) isRunning() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.process.ended():
		return false
	default:
		return true
	}
}

// stop cuts the process off from the server, and kills it.
func (p *replica) stop() {
	if p.session != nil {
		p.session.CutOff()
	}
	if p.process != nil {
		p.process.kill()
	}
	p.session, p.process = nil, nil
}

// pollInterval is the time between two looks at who leads.
const pollInterval = 100 * time.Millisecond

// startReplicas starts the program: one replica, or, for a fault that takes the lease from a leader, a
// second one that stands by.
func (r *run) startReplicas(ctx context.Context) error {
	first, err := r.addReplica()
	if err != nil || !faults.NeedsStandby(r.schedule.Faults) {
		return err
	}
	election := r.explorer.election
	if election == nil {
		return errors.New("the schedule has a fault of a leader, and the program elects none")
	}
	err = r.waitForRequests(ctx, first, func(requests []proxy.Request) bool { return election.leader(requests) == first.session.Name() })
	if err != nil {
		return err
	}
	second, err := r.addReplica()
	if err != nil {
		return err
	}
	return r.waitForRequests(ctx, second, func(requests []proxy.Request) bool {
		return slices.ContainsFunc(requests, func(q proxy.Request) bool {
			return q.Session == second.session.Name() && q.Point.Resource == proxy.Leases
		})
	})
}

// addReplica starts another replica.
func (r *run) addReplica() (*replica, error) {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	p := &replica{number: len(r.replicas) + 1}
	r.replicas = append(r.replicas, p)
	return p, r.startReplicaLocked(p)
}

// waitForRequests waits until a condition on the requests of the run holds, or a replica has ended. It
// gives up after some time, because the rest of the run shows what is wrong.
func (r *run) waitForRequests(ctx context.Context, p *replica, holds func([]proxy.Request) bool) error {
	for until := time.Now().Add(r.explorer.election.takeOverTime()); time.Now().Before(until) && p.isRunning(); {
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
func (r *run) startReplicaLocked(p *replica) error {
	r.processCount++
	name := fmt.Sprint("process-", r.processCount)
	session, err := r.proxy.Session(name)
	if err != nil {
		return err
	}
	path := filepath.Join(r.folder, fmt.Sprintf("kubeconfig-%d", r.processCount))
	if err := os.WriteFile(path, session.Kubeconfig(), 0o600); err != nil {
		return err
	}
	if r.replicaOfSession == nil {
		r.replicaOfSession = make(map[string]int)
	}
	r.replicaOfSession[name] = p.number
	p.session, p.mayEnd = session, false
	p.process, err = r.explorer.operator.launch(processSettings{config: session.Config(), kubeconfig: path, namespace: r.namespace, output: r.output})
	return err
}

// startLocked starts a process of each replica.
func (r *run) startLocked() error {
	r.restartDue = false
	for _, p := range r.replicas {
		if err := r.startReplicaLocked(p); err != nil {
			return err
		}
	}
	return nil
}

// stopLocked kills the processes of all replicas.
func (r *run) stopLocked() {
	for _, p := range r.replicas {
		p.stop()
	}
}

// crashProgram kills the processes of the program. The program starts again at once, or when
// restartProgram is called.
func (r *run) crashProgram(why string, now bool) error {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	r.recordFault(why)
	r.stopLocked()
	if !now {
		r.restartDue = true
		return nil
	}
	return r.startLocked()
}

// restartProgram starts a program that waits for its restart.
func (r *run) restartProgram() error {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	if !r.restartDue {
		return nil
	}
	r.recordEvent(finding.Event{Lane: finding.Operator, Text: "the program starts again"})
	return r.startLocked()
}

// isDown reports whether no process of the program runs because of a crash.
func (r *run) isDown() bool {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	return r.restartDue
}

// exit returns why the program ended by itself, or nil. A replica that has lost its lease may end.
func (r *run) exit() error {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	for _, p := range r.replicas {
		if p.process != nil && !p.isRunning() && !r.hasLostLease(p) {
			return p.process.err()
		}
	}
	return nil
}

// hasLostLease reports whether a replica may have ended because it has lost its lease.
func (r *run) hasLostLease(p *replica) bool {
	e := r.explorer.election
	return e != nil && (p.mayEnd || e.hasLost(p.session.Name(), r.proxy.Requests()))
}

// superviseReplicas starts replicas again that have ended because they have lost their lease, as a kubelet
// does. If the lease belongs to a process that a crash has ended, it releases the lease, so that the program
// need not wait until the lease expires.
func (r *run) superviseReplicas(ctx context.Context) error {
	if r.explorer.election == nil {
		return nil
	}
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	if r.isHandingOver || r.restartDue || r.outages.Load() > 0 {
		return nil
	}
	for _, p := range r.replicas {
		if p.process == nil || p.isRunning() || !r.hasLostLease(p) {
			continue
		}
		r.recordEvent(finding.Event{Lane: finding.Operator, Text: fmt.Sprintf("replica %d, which has lost the lease, has ended and starts again", p.number)})
		p.stop()
		if err := r.startReplicaLocked(p); err != nil {
			return err
		}
	}
	return r.releaseLeaseLocked(ctx)
}

// releaseLeaseLocked releases the lease if it belongs to a process that has ended.
func (r *run) releaseLeaseLocked(ctx context.Context) error {
	claims := r.explorer.election.claims(r.proxy.Requests())
	if len(claims) == 0 || r.hasLeaderLocked() {
		return nil
	}
	last := claims[len(claims)-1]
	if last.Holder == "" || last.Session == r.released {
		return nil
	}
	resource, err := r.explorer.resource(proxy.Leases)
	if err != nil {
		return err
	}
	api := kube.Dynamic(r.explorer.client.WithFieldManager(faults.ForeignManager), resource, r.namespace)
	// A leader that ends in order writes the same.
	_, err = api.Patch(ctx, last.Name, kube.MergePatch(map[string]any{"spec": map[string]any{"holderIdentity": "", "leaseDurationSeconds": 1}}))
	if kube.IgnoreNotFound(err) != nil {
		return err
	}
	r.released = last.Session
	return nil
}

// advanceClock lets time pass for the program. It reports false if the program has the time of the machine.
func (r *run) advanceClock(ctx context.Context) (bool, error) {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	for _, p := range r.replicas {
		if p.process == nil {
			continue
		}
		r.recordEvent(finding.Event{Lane: finding.Operator, Text: "time passes for the program"})
		if advanced, err := p.process.advance(ctx); !advanced || err != nil {
			return advanced, err
		}
	}
	return true, nil
}

// hasLeaderLocked reports whether a replica that runs has the lease.
func (r *run) hasLeaderLocked() bool {
	session := r.explorer.election.leader(r.proxy.Requests())
	return slices.ContainsFunc(r.replicas, func(p *replica) bool {
		return p.isRunning() && p.session.Name() == session
	})
}

// isUnsettled reports whether the run cannot be at rest, although nothing may happen for long: a fault
// takes the lease from a leader, no replica leads yet, or the control plane is down.
func (r *run) isUnsettled() bool {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	if r.isHandingOver || r.outages.Load() > 0 {
		return true
	}
	return r.explorer.election != nil && !r.restartDue && !r.hasLeaderLocked()
}

// handOver waits until another replica leads in place of the replica of an armed fault, and ends the fault. It kills
// the replica before if isKilled is true, and starts the replica again after. It returns early if the channel over is
// closed. Error: a [handOverError] if no other replica takes the lease in time.
func (r *run) handOver(armed *faults.Armed, isKilled bool, over <-chan struct{}) error {
	session := armed.Session()
	former := r.beginHandOver(session, isKilled)
	defer r.endHandOver()
	defer armed.End()
	election := r.explorer.election
	limit := time.NewTimer(election.takeOverTime())
	defer limit.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for successor := ""; successor == "" || successor == session.Name(); {
		select {
		case <-over:
			return nil
		case <-limit.C:
			return &handOverError{fmt.Sprintf("No other replica takes the lease within %s, although it lasts for %s only.", election.takeOverTime(), election.duration)}
		case <-tick.C:
			successor = election.leader(r.proxy.Requests())
		}
	}
	if !isKilled || former == nil {
		return nil
	}
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	r.recordEvent(finding.Event{Lane: finding.Operator, Text: fmt.Sprintf("replica %d starts again", former.number)})
	return r.startReplicaLocked(former)
}

// beginHandOver records that the leader loses its lease, and kills the leader if isKilled is true. It
// returns the replica of the session.
func (r *run) beginHandOver(session *proxy.Session, isKilled bool) *replica {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	r.isHandingOver = true
	for _, p := range r.replicas {
		if p.session == session {
			p.mayEnd = true
			if isKilled {
				p.stop()
			}
			return p
		}
	}
	return nil
}

func (r *run) endHandOver() {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	r.isHandingOver = false
}

// ofReplica returns a text that names the replica of a session, if the run has several replicas.
func (r *run) ofReplica(session string) string {
	if len(r.replicas) < 2 {
		return ""
	}
	return fmt.Sprintf(" by replica %d", r.replicaOfSession[session])
}

// electionEvents returns when replicas have taken the lease.
func (r *run) electionEvents() (events []finding.Event) {
	if r.explorer.election == nil || len(r.replicas) < 2 {
		return nil
	}
	for _, t := range r.explorer.election.terms(r.outcome.requests) {
		if t.session == "" || t.answered.IsZero() {
			continue
		}
		events = append(events, finding.Event{
			At: t.answered.Sub(r.began), Step: t.step, Lane: finding.Operator, To: finding.Server,
			Text: fmt.Sprintf("replica %d takes the lease", r.replicaOfSession[t.session]),
		})
	}
	return events
}
