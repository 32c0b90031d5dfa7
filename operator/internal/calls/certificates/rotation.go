package certificates

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"slices"
	"time"
)

// MaxAuthorities is the largest number of CAs in a bundle. An alert is due when a [Status] has this number.
const MaxAuthorities = 8

// nextState returns the state that the Secret should have. memory is what this replica knows, stored is what is usable
// in the Secret, and learned are CAs that published bundles have. If the result is stored, there is nothing to write.
// The package documentation has the rules.
func nextState(n Names, memory, stored *State, learned []*x509.Certificate, now time.Time) (*State, error) {
	isUnexpired := func(c *x509.Certificate) bool { return !isExpired(c, now) }
	// A CA in stored that has expired may not have expired by the clock of another replica, which would add it again.
	revoked := union(stored.Revoked, filter(memory.Revoked, isUnexpired))
	s, err := joinStates(memory, stored, revoked, now)
	if err != nil {
		return nil, err
	}
	s = &State{
		Authorities: union(s.Authorities, stored.Authorities, memory.Authorities, learned), Key: s.Key,
		Crosses: union(s.Crosses, stored.Crosses, memory.Crosses), Revoked: revoked,
	}
	// A CA that has a successor is the newest one only if its successor cannot sign. By this clock it is not valid yet.
	if s.Key == nil || !now.Before(s.rotationTime()) || s.hasSuccessor(s.Authorities[0]) {
		if s, err = rotate(n, s, now); err != nil {
			return nil, err
		}
		s.Revoked = filter(s.Revoked, isUnexpired)
	}
	s.Authorities = remainingAuthorities(s, stored, now)
	s.Crosses = crossesOf(s.Crosses, s.Authorities)
	return s, nil
}

// joinStates returns the state whose newest CA signs from now on. Its other CAs may be incomplete. It has no key if no
// CA can sign.
//
//	memory       stored        result
//	B, A         A             memory: the Secret was restored, and is older
//	B, A         A, B          memory, if A has signed B: a replica with A has restored the Secret, and added the published B
//	A            B, A          stored: another replica has rotated
//	A            C             stored with the cross certificate "C by A": another replica has begun anew
func joinStates(memory, stored *State, revoked []*x509.Certificate, now time.Time) (*State, error) {
	hasMemory, hasStored := memory.canSign(revoked, now), stored.canSign(revoked, now)
	switch {
	case !hasMemory && !hasStored:
		return new(State), nil
	case !hasStored:
		return memory, nil
	case !hasMemory:
		return stored, nil
	}
	isStored := contains(stored.Authorities, memory.Authorities[0])
	isKnown := contains(memory.Authorities, stored.Authorities[0])
	isLater := memory.hasSuccessor(stored.Authorities[0]) && !stored.hasSuccessor(memory.Authorities[0])
	switch {
	case isKnown && (isLater || !isStored):
		return memory, nil
	case isStored:
		return stored, nil
	}
	cross, err := crossSign(stored.Authorities[0], memory.Authorities[0], memory.Key)
	return &State{
		Authorities: stored.Authorities, Key: stored.Key, Crosses: union([]*x509.Certificate{cross}, stored.Crosses),
	}, err
}

// rotate returns s with a new CA. If s has a key, it signs the new CA.
func rotate(n Names, s *State, now time.Time) (*State, error) {
	c, key, err := newAuthority(n, now)
	if err != nil {
		return nil, err
	}
	made := &State{
		Authorities: union([]*x509.Certificate{c}, s.Authorities), Key: key, Crosses: s.Crosses, Revoked: s.Revoked,
	}
	if s.Key != nil {
		cross, err := crossSign(c, s.Authorities[0], s.Key)
		if err != nil {
			return nil, err
		}
		made.Crosses = union([]*x509.Certificate{cross}, s.Crosses)
	}
	return made, nil
}

// remainingAuthorities returns the CAs of s that stay in the bundle: those that are not revoked and have not expired,
// and at most [MaxAuthorities]. Beyond, the oldest one leaves, but neither the first one nor a CA that has signed the
// first one: other replicas may not have the first one yet. Expired CAs in stored stay if no CA is added.
func remainingAuthorities(s, stored *State, now time.Time) []*x509.Certificate {
	isAdded := false
	for _, c := range s.Authorities {
		isAdded = isAdded || !isExpired(c, now) && !contains(stored.Authorities, c)
	}
	all := filter(s.Authorities, func(c *x509.Certificate) bool {
		return !contains(s.Revoked, c) && (!isExpired(c, now) || !isAdded && contains(stored.Authorities, c))
	})
	for len(all) > MaxAuthorities {
		candidates := filter(all[1:], func(c *x509.Certificate) bool { return !s.isPredecessor(c, all[0]) })
		if len(candidates) == 0 {
			candidates = all[1:]
		}
		oldest := slices.MinFunc(candidates, compareAge)
		all = filter(all, func(c *x509.Certificate) bool { return c != oldest })
	}
	return all
}

// compareAge returns a negative number if a is older than b, and a positive one if a is newer. Times of certificates
// are whole seconds. Of two CAs of the same second, all replicas take the same one for older, so that they agree on the
// CA that leaves.
func compareAge(a, b *x509.Certificate) int {
	return cmp.Or(a.NotAfter.Compare(b.NotAfter), bytes.Compare(a.Raw, b.Raw))
}
