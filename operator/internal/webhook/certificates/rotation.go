package certificates

import (
	"crypto/x509"
	"slices"
	"time"
)

// maxAuthorities is the largest number of CAs in the bundle.
const maxAuthorities = 8

// next returns the state that the Secret should have. memory is what this replica knows, stored is what is usable
// in the Secret, and learned are CAs that published bundles have. If the result is stored, there is nothing to write. The package documentation has the rules.
func (n Names) next(memory, stored State, learned []*x509.Certificate, now time.Time) (State, error) {
	isOver := func(c *x509.Certificate) bool { return isExpired(c, now) }
	revoked := union(stored.Revoked, memory.Revoked, isOver)
	memory, stored = memory.withoutRevoked(revoked), stored.withoutRevoked(revoked)
	s, err := join(memory, stored, now)
	if err != nil {
		return State{}, err
	}
	s.Revoked = revoked
	for _, other := range []State{stored, memory, State{Authorities: learned}.withoutRevoked(revoked)} {
		s.Authorities = union(s.Authorities, other.Authorities, isOver)
		s.Crosses = union(s.Crosses, other.Crosses, isOver)
	}
	if !s.canSign(now) || !now.Before(s.rotationTime()) {
		if s, err = n.rotate(s, now); err != nil {
			return State{}, err
		}
	}
	if len(union(stored.Authorities, s.Authorities, isOver)) > len(stored.Authorities) {
		s.Authorities = without(s.Authorities, isOver) // a CA is added
		s.Revoked = without(s.Revoked, isOver)
	}
	s.Authorities = bound(s.Authorities)
	s.Crosses = without(s.Crosses, func(c *x509.Certificate) bool { return !isCross(c, s.Authorities) })
	return s, nil
}

// join returns the state whose newest CA signs from now on. Its other CAs may be incomplete. It is the zero value if
// no CA can sign.
//
//	memory       stored        result
//	B, A         A             memory: the Secret was restored, and is older
//	A            B, A          stored: another replica has rotated
//	A            C             stored with the cross certificate "C by A": another replica has begun anew
func join(memory, stored State, now time.Time) (State, error) {
	switch hasMemory, hasStored := memory.canSign(now), stored.canSign(now); {
	case !hasMemory && !hasStored:
		return State{}, nil
	case !hasStored:
		return memory, nil
	case !hasMemory || contains(stored.Authorities, memory.Authorities[0]):
		return stored, nil
	case contains(memory.Authorities, stored.Authorities[0]):
		return memory, nil
	}
	cross, err := crossSign(stored.Authorities[0], memory.Authorities[0], memory.Key)
	if err != nil {
		return State{}, err
	}
	stored.Crosses = slices.Insert(slices.Clip(stored.Crosses), 0, cross)
	return stored, nil
}

// rotate returns s with a new CA. If the CA before can sign, it signs the new CA.
func (n Names) rotate(s State, now time.Time) (State, error) {
	c, key, err := n.newAuthority(now)
	if err != nil {
		return State{}, err
	}
	if s.canSign(now) {
		cross, err := crossSign(c, s.Authorities[0], s.Key)
		if err != nil {
			return State{}, err
		}
		s.Crosses = slices.Insert(slices.Clip(s.Crosses), 0, cross)
	}
	s.Authorities, s.Key = slices.Insert(slices.Clip(s.Authorities), 0, c), key
	return s, nil
}

// revoke returns a state with a new CA alone. All CAs of s are revoked.
func (n Names) revoke(s State, now time.Time) (State, error) {
	isOver := func(c *x509.Certificate) bool { return isExpired(c, now) }
	return n.rotate(State{Revoked: union(without(s.Revoked, isOver), s.Authorities, isOver)}, now)
}

// bound returns the certificates without the oldest ones, if there are more than [maxAuthorities]. The first stays.
func bound(all []*x509.Certificate) []*x509.Certificate {
	all = slices.Clone(all)
	for len(all) > maxAuthorities {
		oldest := 1
		for i, c := range all[1:] {
			if c.NotAfter.Before(all[oldest].NotAfter) {
				oldest = i + 1
			}
		}
		all = slices.Delete(all, oldest, oldest+1)
	}
	return all
}
