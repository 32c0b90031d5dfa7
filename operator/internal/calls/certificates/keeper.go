package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yare-go/yare/operator/internal/calls/followed"
)

const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
	// maxWait is how long a keeper does nothing at most. A timer does not notice that somebody sets the clock, or that the
	// machine was suspended.
	maxWait = time.Hour
)

// keeper keeps the Secret and the certificates of a Store as they should be. It is used by one goroutine.
type keeper struct {
	*Store
	// lastKnown is the last known state of the Secret. It is nil if the Secret must be read.
	lastKnown *secret
	// memory is the state that this replica knows, and data is its data. Both are empty before the Secret was read.
	memory *State
	data   data
	// learned are CAs of published bundles.
	learned []*x509.Certificate
	// renewal is when the serving certificate gets a successor.
	renewal time.Time
	// isRevoking is true if all CAs are to be replaced by a new one.
	isRevoking bool
	// failures is the number of attempts in a row that have failed.
	failures int
	attempts followed.Attempts
}

func newKeeper(s *Store) *keeper { return &keeper{Store: s, memory: new(State)} }

// run does the work of [Store.Run].
func (k *keeper) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	observed := make(chan observation)
	var watching sync.WaitGroup
	watching.Go(func() { k.secret.watch(ctx, observed) })
	defer watching.Wait()
	defer cancel()
	var due <-chan time.Time
	for {
		var err error
		select {
		case o := <-observed:
			if err = o.err; err == nil {
				k.lastKnown = o.secret
			} else if k.lastKnown != nil {
				continue // the watch goes on, and a write finds out what it has missed
			}
		case all := <-k.newlyLearned:
			k.learned = union(k.learned, all)
		case <-due:
		case <-ctx.Done():
			return nil
		}
		if err == nil && (k.lastKnown != nil || k.failures > 0) { // the watch reads first
			err = k.update(ctx)
		}
		if ctx.Err() == nil {
			due = time.After(k.recordAttempt(err))
		}
	}
}

// recordAttempt records and logs how the last attempt has ended. It returns the time until the next one.
func (k *keeper) recordAttempt(err error) time.Duration {
	if err == nil {
		if k.failures > 0 {
			k.log.Info("the webhook certificates are right again", "secret", k.secret.String())
		}
		k.failures = 0
		k.attempts.RecordProblem(nil)
		if k.renewal.IsZero() {
			return maxRetry // the watch has not shown the Secret
		}
		now := k.now()
		return max(minRetry, min(maxWait, k.renewal.Sub(now), k.memory.rotationTime().Sub(now)))
	}
	if k.attempts.RecordProblem(err) {
		k.log.Error("the webhook certificates cannot be kept; will try again", "secret", k.secret.String(), "error", err)
	}
	wait := min(minRetry<<min(k.failures, 10), maxRetry)
	k.failures++
	return wait/2 + rand.N(wait/2) // replicas do not act at the same moment
}

// update brings the Secret and the certificates of this replica to the state that is due.
func (k *keeper) update(ctx context.Context) error {
	// Without an answer, the Deployment is read when the Secret is made.
	_ = k.secret.deployment.ReadOnce(ctx)
	for {
		now := k.now()
		if k.memory.canSign(nil, now) { // also while the Secret cannot be read or written
			if err := k.useState(k.memory, k.data, now); err != nil {
				return err
			}
		}
		if k.lastKnown == nil {
			current, err := k.secret.read(ctx)
			if err != nil {
				return err
			}
			k.lastKnown = current
		}
		stored, problem := decodeState(k.names, k.lastKnown.Data)
		wanted, err := k.wanted(stored, now)
		if err != nil {
			return err
		}
		d, err := wanted.encode()
		if err != nil {
			return err
		}
		if d.isEqual(k.lastKnown.Data) {
			return k.useState(wanted, d, now)
		}
		if !k.attempts.RecordWrite(time.Now()) {
			return fmt.Errorf("the Secret %s is changed again and again: see its managedFields, and the clocks of the nodes",
				k.secret)
		}
		written, err := k.secret.write(ctx, k.lastKnown, d)
		switch {
		case err == nil:
			k.isRevoking = false
			k.logWrite(stored, wanted, problem)
		case !isOutdated(err) && k.lastKnown.Metadata.UID == "":
			return err // there is nothing to delete
		case !isOutdated(err):
			return fmt.Errorf("%w; if the Secret %s cannot be changed, delete it: this program creates it again", err, k.secret)
		}
		k.lastKnown = written // nil if the write was refused
	}
}

// logWrite logs a write. problem is what decodeState has found in the Secret before.
func (k *keeper) logWrite(stored, written *State, problem error) {
	newest := written.Authorities[0]
	attributes := []any{"secret", k.secret.String(), "until", newest.NotAfter, "authorities", len(written.Authorities)}
	switch {
	case !contains(stored.Authorities, newest) && !contains(k.memory.Authorities, newest):
		k.log.Info("made a webhook CA", attributes...)
	case problem != nil:
		k.log.Warn("the Secret of the webhook certificates was restored", append(attributes, "problem", problem)...)
	default:
		k.log.Warn(
			"the Secret of the webhook certificates lacked CAs that this replica knows, or that are published: they were added",
			attributes...)
	}
}

// wanted returns the state that the Secret should have.
func (k *keeper) wanted(stored *State, now time.Time) (*State, error) {
	if k.isRevoking {
		return rotate(k.names, &State{Revoked: union(stored.Revoked, stored.Authorities, k.learned)}, now)
	}
	return nextState(k.names, k.memory, stored, k.learned, now)
}

// useState records a state with its data, and makes the serving certificate that is due.
func (k *keeper) useState(s *State, d data, now time.Time) error {
	before := k.published.Load()
	if before.serving != nil && d.isEqual(k.data) && now.Before(k.renewal) && isValid(before.serving.Leaf, now) {
		return nil
	}
	serving, err := newServing(k.names, s, now)
	if err != nil {
		return err
	}
	k.memory, k.data, k.renewal = s, d, now.Add(servingAge)
	published := &publishedState{state: s, bundle: d.Authorities, serving: serving, changed: before.changed}
	if bytes.Equal(d.Authorities, before.bundle) {
		k.published.Store(published)
		return nil
	}
	published.changed = make(chan struct{})
	k.published.Store(published)
	close(before.changed)
	return nil
}
