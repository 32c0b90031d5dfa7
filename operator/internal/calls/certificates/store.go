package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// Config describes a [Store]. All fields but Deployment and Now are required.
type Config struct {
	// Client sends each request to the server, at any time: it has no cache, and no fence of a leader election,
	// because standbys write too.
	Client *kube.Client
	// Namespace and Secret name the Secret. The namespace is that of the installation.
	Namespace, Secret string
	// Deployment is the Deployment of the installation, which becomes the owner of a Secret that the Store makes. Once it
	// is gone, the Store makes none. If Deployment is empty, the Secret has no owner.
	Deployment string
	// Names are the names by which API servers call this program.
	Names Names
	Log   *slog.Logger
	// Now returns the time. Default: [time.Now].
	Now func() time.Time
}

// Store has the certificates of one replica, and the bundle. [Store.Run] keeps them, and the Secret, as they should be.
// It is safe for concurrent use.
type Store struct {
	names  Names
	log    *slog.Logger
	now    func() time.Time
	secret *secretClient
	// published is what the keeper has published last.
	published atomic.Pointer[publishedState]
	// newlyLearned takes CAs of published bundles that the Secret lacks. If it is full, the keeper changes the bundle
	// soon, and whoever publishes it asks again.
	newlyLearned chan []*x509.Certificate
}

// publishedState is what the keeper of a Store has published. It is not changed after its creation.
type publishedState struct {
	state *State
	// bundle is the bundle in PEM.
	bundle []byte
	// serving is the serving certificate with the chain that is presented. It is nil before the Secret was read.
	serving *tls.Certificate
	// changed is closed when there is another bundle.
	changed chan struct{}
}

// New returns a Store, which has no certificate before [Store.Run] runs. It returns an error if c has no name of a
// Secret.
func New(c Config) (*Store, error) {
	if c.Namespace == "" || c.Secret == "" {
		return nil, errors.New("the Secret of the webhook certificates has no namespace or no name: give both in the Config")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Store{
		names: c.Names, now: c.Now, secret: newSecretClient(c.Client, c.Namespace, c.Secret),
		newlyLearned: make(chan []*x509.Certificate, 1),
	}
	s.log = c.Log.With("secret", s.secret.Key.String())
	s.secret.deployment = followed.NewDeployment(c.Client, c.Namespace, c.Deployment)
	s.published.Store(&publishedState{changed: make(chan struct{})})
	return s, nil
}

// Run keeps the Secret and the certificates as they should be, until ctx ends. Then it returns nil. Problems are
// logged, each once in a row. Run must be called once.
func (s *Store) Run(ctx context.Context) error {
	newKeeper(s).run(ctx)
	return nil
}

func newKeeper(s *Store) *keeper {
	return &keeper{Store: s, object: followed.Object[secret]{Reference: s.secret.Reference}, memory: new(State)}
}

// GetCertificate returns the serving certificate, for [tls.Config]. It returns an error while there is none.
func (s *Store) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.published.Load().serving; c != nil {
		return c, nil
	}
	return nil, errors.New("this replica has no certificate yet")
}

// Bundle returns the certificates of all CAs in PEM. It is empty before the Secret was read. See [Store.BundleFor].
func (s *Store) Bundle() []byte { return s.published.Load().bundle }

// BundleFor returns the bundle to publish where another bundle is published, which may be empty. That is the published
// bundle if the CAs of this program are in it, and no others. Otherwise it has all CAs of this program, and those of
// the published bundle that are valid: replicas may use CAs that this replica does not know yet. The Store adds these
// CAs to the Secret. BundleFor returns nothing before the Secret was read: then there is nothing to publish.
func (s *Store) BundleFor(published []byte) []byte {
	now := s.now()
	p := s.published.Load()
	if p.serving == nil {
		return nil
	}
	all := decodeCertificates(published)
	own := filter(all, func(c *x509.Certificate) bool { return s.names.isAuthority(c) && !contains(p.state.Revoked, c) })
	learned := filter(own,
		func(c *x509.Certificate) bool { return !contains(p.state.Authorities, c) && !isExpired(c, now) })
	if len(learned) > 0 {
		select {
		case s.newlyLearned <- learned:
		default:
		}
	}
	if len(own) == len(all) && len(union(own, p.state.Authorities)) == len(own) {
		return published
	}
	return encodeCertificates(remainingAuthorities(
		&State{Authorities: union(p.state.Authorities, learned), Crosses: p.state.Crosses}, p.state, now))
}

// Changed returns a channel that is closed when the bundle changes. Call it before [Store.Bundle].
func (s *Store) Changed() <-chan struct{} { return s.published.Load().changed }

// Ready returns nil if the replica has a valid certificate. Otherwise it returns the reason why not.
func (s *Store) Ready() error {
	if c := s.published.Load().serving; c == nil || !isValid(c.Leaf, s.now()) {
		return fmt.Errorf(
			"there is no valid certificate for webhooks: the %s is not read or written yet; the log has the reason",
			s.secret)
	}
	return nil
}

// Status is what metrics show of certificates.
type Status struct {
	// CertificateLeft is how long the serving certificate is valid, and AuthorityLeft is how long the newest CA is
	// valid. Both are zero while there is no certificate. They are negative after the end.
	CertificateLeft, AuthorityLeft time.Duration
	// Authorities is the number of CAs. With [MaxAuthorities] the next rotation may drop a CA that is in use.
	Authorities int
}

// Status returns the present Status.
func (s *Store) Status() Status {
	p := s.published.Load()
	if p.serving == nil {
		return Status{}
	}
	now, all := s.now(), p.state.Authorities
	return Status{p.serving.Leaf.NotAfter.Sub(now), all[0].NotAfter.Sub(now), len(all)}
}

// Revoke replaces all CAs in the Secret by a new one at once, as after the theft of a key. published are the bundles
// that are published: their CAs are revoked too. Replicas refuse revoked CAs until they expire, also when a backup of
// the Secret is restored. Calls may fail until the new bundle is published. Revoke logs the end of the new CA.
func Revoke(ctx context.Context, c Config, published ...[]byte) error {
	s, err := New(c)
	if err != nil {
		return err
	}
	k := newKeeper(s)
	k.isRevoking, k.object.NeedsRead = true, true
	for _, bundle := range published {
		k.learned = union(k.learned, filter(decodeCertificates(bundle), s.names.isAuthority))
	}
	return k.update(ctx)
}

// InMemory returns a serving certificate for n by a CA that is in memory only, and the bundle with the CA. Both are for
// one process of a test or of yare dev: the certificate is valid for 70 days, and nobody renews it.
func InMemory(n Names) (serving *tls.Certificate, bundle []byte, err error) {
	now := time.Now()
	s, err := rotate(n, new(State), now)
	if err != nil {
		return nil, nil, err
	}
	serving, err = newServing(n, s, now)
	return serving, encodeCertificates(s.Authorities), err
}
