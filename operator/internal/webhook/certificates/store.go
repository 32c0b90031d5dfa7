package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

// Config describes a [Store]. All fields but MachineTime are required.
type Config struct {
	// Client sends each request to the server, at any time: it has no cache, and no fence of a leader election,
	// because standbys write too.
	Client *kube.Client
	// Namespace and Secret name the Secret. The namespace is that of the installation.
	Namespace, Secret string
	// Names are the names by which API servers call this program.
	Names Names
	Log   *slog.Logger
	// MachineTime returns the time of this machine. Default: [time.Now].
	MachineTime func() time.Time
}

// check returns an error if something is missing in c.
func (c Config) check() error {
	if c.Namespace == "" || c.Secret == "" {
		return fmt.Errorf("the Secret of the webhook certificates has no namespace or no name: %q", c.Namespace+"/"+c.Secret)
	}
	return nil
}

// secretClient returns the client of the Secret. Its requests set the clock.
func (c Config) secretClient(clock *serverClock) secretClient {
	return secretClient{c.Client.With(clock.handler), c.Namespace, c.Secret}
}

func (c Config) newClock() *serverClock {
	if c.MachineTime == nil {
		return newServerClock(time.Now)
	}
	return newServerClock(c.MachineTime)
}

// Store keeps the Secret of an installation as it should be, and has the certificates of one replica. It is safe for
// concurrent use.
type Store struct {
	names  Names
	log    *slog.Logger
	clock  *serverClock
	secret secretClient
	// hasLearned has an element when learned has become longer.
	hasLearned chan struct{}

	mu sync.Mutex
	// memory is the state that this replica knows. It is the zero value before the Secret was read.
	memory State
	// learned are CAs that the memory lacked and that were found in published bundles.
	learned []*x509.Certificate
	// serving is the serving certificate, with the chain that is presented. It is nil before memory has a CA.
	serving *tls.Certificate
	// renewal is when serving gets a successor.
	renewal time.Time
	// changed is closed when the bundle changes.
	changed chan struct{}
	// problem is why the last attempt to read or write the Secret has failed, or nil.
	problem error
}

// New returns a Store, which has no certificate before [Store.Run] runs. It returns an error if c has no name of a
// Secret.
func New(c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	clock := c.newClock()
	return &Store{
		names: c.Names, log: c.Log, clock: clock, secret: c.secretClient(clock),
		hasLearned: make(chan struct{}, 1), changed: make(chan struct{}),
	}, nil
}

// GetCertificate returns the serving certificate, for [tls.Config]. It returns an error while there is none.
func (s *Store) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		return nil, errors.New("this replica has no certificate yet")
	}
	return s.serving, nil
}

// Bundle returns the certificates of all CAs in PEM. It is empty before the Secret was read. See [Store.BundleFor].
func (s *Store) Bundle() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.bundle()
}

// BundleFor returns the bundle to publish where another bundle is published, which may be empty. That is the published
// bundle if the CAs of this program are in it, and no others. Otherwise it has all CAs of this program, and those of
// the published bundle that are valid: replicas may use CAs that this replica does not know yet. The Store adds these
// CAs to the Secret. BundleFor returns nothing before the Secret was read: then there is nothing to publish.
func (s *Store) BundleFor(published []byte) []byte {
	now, isKnown := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil || !isKnown {
		return nil
	}
	all, err := decodeCertificates("caBundle", published)
	isForeign := func(c *x509.Certificate) bool { return s.names.check(c) != nil || contains(s.memory.Revoked, c) }
	isOver := func(c *x509.Certificate) bool { return isForeign(c) || isExpired(c, now) }
	bundle := bound(union(s.memory.Authorities, all, isOver))
	if learned := union(s.learned, bundle[len(s.memory.Authorities):], isOver); len(learned) > len(s.learned) {
		s.learned = learned
		wake(s.hasLearned)
	}
	isComplete := !slices.ContainsFunc(bundle, func(c *x509.Certificate) bool { return !contains(all, c) })
	if err == nil && isComplete && !slices.ContainsFunc(all, isForeign) {
		return published
	}
	return encodeCertificates(bundle)
}

// Changed returns a channel that is closed when the bundle changes. Call it before [Store.Bundle].
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Ready returns nil if the replica has a valid certificate. Otherwise it returns the reason why not.
func (s *Store) Ready() error {
	now, isKnown := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.serving != nil && isKnown && isValid(s.serving.Leaf, now):
		return nil
	case s.problem != nil:
		return fmt.Errorf("there is no valid certificate for webhooks: %w", s.problem)
	}
	return fmt.Errorf("there is no valid certificate for webhooks: the Secret %s is not read yet", s.secret)
}

// Status is what metrics show of certificates.
type Status struct {
	// CertificateLeft is how long the serving certificate is valid, and AuthorityLeft is how long the newest CA is
	// valid. Both are zero while there is no certificate. They are negative after the end.
	CertificateLeft, AuthorityLeft time.Duration
	// Authorities is the number of CAs. With [MaxAuthorities] the next rotation may drop a CA that is in use.
	Authorities int
}

// MaxAuthorities is the largest number of CAs in a bundle. An alert is due when a [Status] has this number.
const MaxAuthorities = maxAuthorities

// Status returns the present Status.
func (s *Store) Status() Status {
	now, isKnown := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil || !isKnown {
		return Status{}
	}
	return Status{s.serving.Leaf.NotAfter.Sub(now), s.memory.Authorities[0].NotAfter.Sub(now), len(s.memory.Authorities)}
}

const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
	// maxWrites is how often the Secret is written in a row while others write it.
	maxWrites = 5
)

// Run keeps the Secret and the certificates as they should be, until ctx ends. Then it returns nil. Problems are
// logged, each once in a row. Run must be called once.
func (s *Store) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	states := make(chan secret)
	var watching sync.WaitGroup
	watching.Go(func() { s.secret.watch(ctx, states, func(err error) { s.recordProblem(ctx, err) }) })
	defer watching.Wait()
	defer cancel()
	var live *secret // as far as known
	failures := 0
	timer := time.NewTimer(0)
	for {
		select {
		case seen := <-states:
			live = &seen
		case <-s.clock.changed:
		case <-s.hasLearned:
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		if live == nil {
			continue // the watch has not shown the Secret
		}
		seen, err := s.update(ctx, *live)
		live = &seen
		if s.recordProblem(ctx, err); err == nil {
			failures = 0
			timer.Reset(s.untilDue())
			continue
		}
		wait := min(minRetry<<min(failures, 10), maxRetry)
		failures++
		timer.Reset(wait/2 + rand.N(wait/2)) // replicas do not act at the same moment
	}
}

// update brings the Secret and the certificates of this replica to the state that is due. It returns the Secret as far
// as it is known then.
func (s *Store) update(ctx context.Context, live secret) (secret, error) {
	for range maxWrites {
		if s.clock.needsRequest() {
			if err := s.secret.refresh(ctx, &live); err != nil {
				return live, err
			}
		}
		now, isKnown := s.clock.now()
		if !isKnown {
			return live, errNoTime
		}
		if err := s.renew(now); err != nil { // also while the Secret cannot be written
			return live, err
		}
		stored, problem := s.names.decode(live.Data)
		memory, learned := s.known()
		next, err := s.names.next(memory, stored, learned, now)
		if err != nil {
			return live, fmt.Errorf("make a webhook CA: %w", err)
		}
		d, err := next.encode()
		if err != nil {
			return live, err
		}
		if d.isEqual(live.Data) {
			return live, s.adopt(next, now)
		}
		written, err := s.secret.write(ctx, live, d)
		switch {
		case err == nil:
			s.logWrite(memory, stored, next, live, problem, now)
			live = written
		case isOutdated(err):
			if err := s.secret.refresh(ctx, &live); err != nil {
				return live, err
			}
		default:
			return live, fmt.Errorf("%w; if the Secret cannot be changed, delete it: this program creates it again", err)
		}
	}
	return live, fmt.Errorf("the Secret %s is changed again and again: find out in its managedFields who else writes it", s.secret)
}

// errNoTime is the error of a server whose answers contradict each other.
var errNoTime = errors.New("the time of the API server is not known: the header Date of its answers differs from answer to answer by more than a day")

// logWrite logs a write, in one line.
func (s *Store) logWrite(memory, stored, next State, live secret, problem error, now time.Time) {
	attributes := []any{"secret", s.secret.String(), "authorities", len(next.Authorities), "until", next.Authorities[0].NotAfter}
	known := union(memory.Authorities, stored.Authorities, func(c *x509.Certificate) bool { return contains(next.Revoked, c) })
	dropped := without(known, func(c *x509.Certificate) bool {
		return isExpired(c, now) || contains(next.Authorities, c) || contains(next.Revoked, c)
	})
	if len(dropped) > 0 {
		s.log.Error("there are too many webhook CAs: the oldest one was dropped, and calls may fail; find out who replaces the Secret again and again", attributes...)
	}
	switch isNew := !contains(known, next.Authorities[0]); {
	case isNew && stored.Key != nil && isValid(stored.Authorities[0], now):
		s.log.Info("the webhook CA was rotated", attributes...)
	case live.Data.isEmpty() && isNew:
		s.log.Info("made a webhook CA", attributes...)
	case live.Data.isEmpty():
		s.log.Warn("the Secret of the webhook certificates was deleted or emptied: it was restored", attributes...)
	case problem != nil:
		s.log.Warn("the Secret of the webhook certificates was unusable: it was replaced", append(attributes, "problem", problem)...)
	case isNew:
		s.log.Warn("the webhook CA has expired: it was replaced", attributes...)
	default:
		s.log.Warn("the Secret of the webhook certificates lacked what this replica knows: it was added", attributes...)
	}
}

// known returns the memory, and the CAs that were found in published bundles.
func (s *Store) known() (memory State, learned []*x509.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory, s.learned
}

// adopt records the state of the Secret, and makes a serving certificate if the CAs have changed.
func (s *Store) adopt(next State, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil || !slices.EqualFunc(s.memory.Crosses, next.Crosses, (*x509.Certificate).Equal) || !s.memory.Authorities[0].Equal(next.Authorities[0]) {
		if err := s.serveLocked(next, now); err != nil {
			return err
		}
	}
	isChanged := !slices.EqualFunc(s.memory.Authorities, next.Authorities, (*x509.Certificate).Equal)
	if s.memory = next; isChanged {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return nil
}

// renew makes a serving certificate if it is due, and if the memory has a CA that can sign.
func (s *Store) renew(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil || now.Before(s.renewal) && isValid(s.serving.Leaf, now) || !s.memory.canSign(now) {
		return nil
	}
	return s.serveLocked(s.memory, now)
}

// serveLocked makes a serving certificate from a state.
func (s *Store) serveLocked(from State, now time.Time) error {
	made, err := s.names.newServing(from, now)
	if err != nil {
		return fmt.Errorf("make a serving certificate for webhooks: %w", err)
	}
	s.serving, s.renewal = made, now.Add(servingAge)
	return nil
}

// untilDue returns how long nothing is due.
func (s *Store) untilDue() time.Duration {
	now, _ := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.memory.rotationTime()
	if s.renewal.Before(next) {
		next = s.renewal
	}
	return max(next.Sub(now), minRetry)
}

// recordProblem records how the last attempt has ended, and logs changes of the problem.
func (s *Store) recordProblem(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	before := s.problem
	s.problem = err
	s.mu.Unlock()
	switch {
	case err == nil && before != nil:
		s.log.Info("the Secret of the webhook certificates is right again", "secret", s.secret.String())
	case err != nil && (before == nil || before.Error() != err.Error()):
		s.log.Error("the Secret of the webhook certificates cannot be kept; will try again", "secret", s.secret.String(), "error", err)
	}
}

// wake adds an element to c if it has none.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Revoke replaces all CAs in the Secret by a new one at once, as after the theft of a key. published are the bundles
// that are published: their CAs are revoked too. Replicas refuse revoked CAs until they expire, also when a backup of
// the Secret is restored. Calls may fail until the new bundle is published. Revoke writes the Secret of c, and
// returns the end of the new CA.
func Revoke(ctx context.Context, c Config, published ...[]byte) (end time.Time, err error) {
	if err := c.check(); err != nil {
		return time.Time{}, err
	}
	clock := c.newClock()
	client := c.secretClient(clock)
	for range maxWrites {
		var live secret
		if err := client.refresh(ctx, &live); err != nil {
			return time.Time{}, err
		}
		now, isKnown := clock.now()
		if !isKnown {
			err = errNoTime // the next answer may confirm this one
			continue
		}
		state, _ := c.Names.decode(live.Data) // what cannot be used is replaced
		for _, bundle := range published {
			all, _ := decodeCertificates("caBundle", bundle)
			state.Authorities = union(state.Authorities, all, func(a *x509.Certificate) bool { return c.Names.check(a) != nil })
		}
		if state, err = c.Names.revoke(state, now); err != nil {
			return time.Time{}, err
		}
		var d data
		if d, err = state.encode(); err == nil {
			_, err = client.write(ctx, live, d)
		}
		if err == nil {
			return state.Authorities[0].NotAfter, nil
		} else if !isOutdated(err) {
			return time.Time{}, err
		}
	}
	return time.Time{}, fmt.Errorf("replace the CA in the Secret %s: %w", client, err)
}
