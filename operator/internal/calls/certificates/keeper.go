package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/followed"
)

const (
	minWait = time.Second
	// maxRetry is the longest wait after a failed attempt.
	maxRetry = 30 * time.Second
	// maxWait is how long a keeper does nothing at most. A timer does not notice that somebody sets the clock, or that the
	// machine was suspended.
	maxWait = time.Hour
)

// keeper keeps the Secret and the certificates of a Store as they should be. It is used by one goroutine.
type keeper struct {
	*Store
	object followed.Object[secret]
	// memory is the state that this replica knows, and data is its data. Both are empty before the Secret was read.
	memory *State
	data   data
	// learned are CAs of published bundles.
	learned []*x509.Certificate
	// renewal is when the serving certificate gets a successor.
	renewal time.Time
	// isRevoking is true if all CAs are to be replaced by a new one.
	isRevoking bool
}

// run does the work of [Store.Run].
func (k *keeper) run(ctx context.Context) {
	learn := func(all []*x509.Certificate) { k.learned = union(k.learned, all) }
	loop := followed.Keeper{
		Sources: []followed.Source{k.object.Source(k.secret.client), followed.Values(k.newlyLearned, learn)},
		Changed: func() <-chan struct{} { return nil },
		Correct: func(ctx context.Context) (bool, time.Duration) {
			return k.object.Attempt(ctx, k.update, k.logProblem) == nil, k.untilRenewal()
		},
		MaxRetry: maxRetry,
	}
	loop.Run(ctx)
}

// untilRenewal returns the time until a certificate is due, but at least minWait and at most maxWait. It returns 0
// before the watch has shown the Secret.
func (k *keeper) untilRenewal() time.Duration {
	if k.renewal.IsZero() {
		return 0
	}
	now := k.now()
	return max(minWait, min(maxWait, k.renewal.Sub(now), k.memory.rotationTime().Sub(now)))
}

// logProblem logs why the certificates cannot be kept, or that they are right again.
func (k *keeper) logProblem(err error) {
	if err == nil {
		k.log.Info("the webhook certificates are right again")
		return
	}
	k.log.Error("the webhook certificates cannot be kept; will try again", "error", err)
}

// update brings the Secret and the certificates of this replica to the state that is due.
func (k *keeper) update(ctx context.Context) error {
	// Without an answer, the Deployment is read when the Secret is made.
	_ = k.secret.deployment.ReadOnce(ctx)
	if now := k.now(); k.memory.canSign(nil, now) { // also while the Secret cannot be read or written
		if err := k.useState(k.memory, k.data, now); err != nil {
			return err
		}
	}
	return k.object.Correct(ctx, k.secret.client, k.change)
}

// change returns how the Secret has to change. If there is nothing to change, it uses the state of the Secret.
func (k *keeper) change(ctx context.Context, lastKnown *secret) (none followed.Change[secret], err error) {
	now := k.now()
	stored, problem := decodeState(k.names, lastKnown.Data)
	wanted, err := k.wanted(stored, now)
	if err != nil {
		return none, err
	}
	d, err := wanted.encode()
	if err != nil {
		return none, err
	}
	if d.isEqual(lastKnown.Data) {
		return none, k.useState(wanted, d, now)
	}
	write := func() (followed.State[secret], error) {
		written, err := k.secret.write(ctx, lastKnown, d)
		switch {
		case err == nil:
			k.isRevoking = false
			k.logWrite(stored, wanted, problem)
		case kube.IsNotFound(err): // the namespace does not exist, so a read of the Secret does not help
			err = errors.New(err.Error())
		case !followed.IsOutdated(err) && lastKnown.Metadata.UID != "":
			err = fmt.Errorf("%w; if the %s cannot be changed, delete it: this program creates it again", err, k.secret)
		}
		return written, err
	}
	return followed.Change[secret]{Description: "CAs, by the clocks of the nodes", Write: write}, nil
}

// logWrite logs a write. problem is what decodeState has found in the Secret before.
func (k *keeper) logWrite(stored, written *State, problem error) {
	newest := written.Authorities[0]
	attributes := []any{"until", newest.NotAfter, "authorities", len(written.Authorities)}
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
