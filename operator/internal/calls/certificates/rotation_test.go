package certificates

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

// API servers keep the bundle of any earlier day, and replicas the state of any day within their renewal. The clock of an API server
// is 30 days off. As long as a CA of the bundle is valid by this clock, no call fails. A bundle changes twice a year.
func TestRotation(t *testing.T) {
	t.Parallel()
	type replica struct {
		chain [][]byte
		until int
	}
	const days, step, lag = 1500, 15, 30
	var bundles []State
	var replicas []replica
	var s State
	changes := 0
	for d := 0; d <= days; d += step {
		now := begin().Add(time.Duration(d) * day)
		before := s
		s = mustNext(t, s, s, now)
		if !slices.EqualFunc(before.Authorities, s.Authorities, (*x509.Certificate).Equal) {
			changes++
			bundles = append(bundles, s)
		}
		for _, old := range before.Authorities {
			if !isExpired(old, now) && !contains(s.Authorities, old) {
				t.Fatalf("day %d: the bundle loses a CA that has not expired", d)
			}
		}
		if len(s.Authorities) > 4 {
			t.Errorf("day %d: %d CAs", d, len(s.Authorities))
		}
		serving := mustServe(t, s, now)
		if n := len(serving.Certificate); n > 4 {
			t.Errorf("day %d: a replica presents %d certificates", d, n)
		}
		replicas = append(replicas, replica{serving.Certificate, d + lag})
		for i, bundle := range bundles {
			for _, clockError := range []time.Duration{-30 * day, 0, 30 * day} {
				serverTime := now.Add(clockError)
				if !slices.ContainsFunc(bundle.Authorities, func(c *x509.Certificate) bool { return isValid(c, serverTime) }) {
					continue
				}
				for _, r := range replicas {
					if r.until < d {
						continue
					}
					if err := verify(encodeCertificates(bundle.Authorities), r.chain, name, serverTime); err != nil {
						t.Fatalf("day %d: an API server with bundle %d and a clock that is %s off refuses a replica: %v", d, i, clockError, err)
					}
				}
			}
		}
	}
	if want := 1 + days/180; changes != want {
		t.Errorf("the bundle has changed %d times, want %d", changes, want)
	}
}

// At day 360 a bundle can hold only the first of three CAs, which has five days left.
func TestOldestBundle(t *testing.T) {
	t.Parallel()
	first := mustNext(t, State{}, State{}, begin())
	s := first
	for _, d := range []time.Duration{180 * day, 360 * day} {
		s = mustNext(t, s, s, begin().Add(d))
	}
	for d := 360 * day; d < 365*day; d += day {
		if err := verify(encodeCertificates(first.Authorities), mustServe(t, s, begin().Add(d)).Certificate, name, begin().Add(d)); err != nil {
			t.Errorf("day %d: %v", d/day, err)
		}
	}
}

// A replica repairs the Secret from its memory. Whatever it writes, API servers with the bundle of the memory and with
// that of the Secret accept it, as far as their CAs can sign.
func TestRepair(t *testing.T) {
	t.Parallel()
	a := mustNext(t, State{}, State{}, begin())
	b := mustNext(t, a, a, begin().Add(180*day))
	c := mustNext(t, b, b, begin().Add(360*day))
	other := mustNext(t, State{}, State{}, begin().Add(200*day))
	foreign, err := nextOf(ServiceNames("db", "shop"), State{}, State{}, nil, begin().Add(200*day))
	if err != nil {
		t.Fatal(err)
	}
	lost := State{Authorities: other.Authorities}
	// A replica that knows only the CA of before a rotation has added the published CAs to a restored Secret.
	completed := func(s State, published State) State {
		joined, err := nextOf(names(), s, s, published.Authorities, begin().Add(100*day))
		if err != nil {
			t.Fatal(err)
		}
		return joined
	}
	beforeOne, beforeTwo := completed(a, b), completed(a, c)
	revokedState, err := rotate(names(), &State{Revoked: b.Authorities}, begin().Add(200*day))
	if err != nil {
		t.Fatal(err)
	}
	revoked := reread(t, *revokedState)
	for _, test := range []struct {
		what           string
		memory, stored State
		day            int
		newest         *x509.Certificate // nil for a new one
		has            []*x509.Certificate
		chain          int // certificates that a replica presents
	}{
		{"nothing to do", b, b, 200, b.Authorities[0], b.Authorities, 2},
		{"a start", State{}, b, 200, b.Authorities[0], b.Authorities, 2},
		{"another replica has rotated", a, b, 200, b.Authorities[0], b.Authorities, 2},
		{"deleted", b, State{}, 200, b.Authorities[0], b.Authorities, 2},
		{"deleted before a start", State{}, State{}, 200, nil, nil, 1},
		{"restored to before a rotation", b, a, 200, b.Authorities[0], b.Authorities, 2},
		{"restored to before two rotations", c, a, 362, c.Authorities[0], c.Authorities, 3},
		{"restored to before a rotation, and completed", b, beforeOne, 200, b.Authorities[0], b.Authorities, 2},
		{"restored to before two rotations, and completed", c, beforeTwo, 362, c.Authorities[0], c.Authorities, 3},
		{"another replica has rotated, and this one knows it from the bundle", beforeOne, b, 200, b.Authorities[0], b.Authorities, 2},
		{"restored, while a rotation is due", b, a, 361, nil, b.Authorities, 3},
		{"another replica has begun anew", b, other, 201, other.Authorities[0], slices.Concat(other.Authorities, b.Authorities), 3},
		{"the key is lost", b, lost, 201, b.Authorities[0], slices.Concat(b.Authorities, other.Authorities), 2},
		{"the key is lost before a start", State{}, lost, 201, nil, other.Authorities, 1},
		{"expired before a start", State{}, a, 366, nil, nil, 1},
		{"expired while down", a, a, 900, nil, nil, 1},
		{"revoked", b, revoked, 201, revoked.Authorities[0], nil, 1},
		{"restored to before the revocation", revoked, b, 201, revoked.Authorities[0], nil, 1},
		{"restored to before the revocation, with another CA", revoked, other, 201, other.Authorities[0], slices.Concat(other.Authorities, revoked.Authorities), 2},
		{"not valid yet", State{}, a, -40, nil, a.Authorities, 1},
		{"another replica has rotated, with a clock that is 30 days ahead", a, b, 150, b.Authorities[0], b.Authorities, 2},
		{"another replica has rotated, with a clock that is 40 days ahead", a, b, 140, nil, b.Authorities, 3},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			now := begin().Add(time.Duration(test.day) * day)
			s := mustNext(t, test.memory, test.stored, now)
			isNew := !contains(test.memory.Authorities, s.Authorities[0]) && !contains(test.stored.Authorities, s.Authorities[0])
			if isNew != (test.newest == nil) || !isNew && !s.Authorities[0].Equal(test.newest) {
				t.Errorf("the newest CA is another one (made by this step: %t)", isNew)
			}
			for _, each := range test.has {
				if !contains(s.Authorities, each) {
					t.Error("the bundle lacks a CA")
				}
			}
			want := len(test.has)
			if test.newest == nil || len(test.has) == 0 {
				want++
			}
			if len(s.Authorities) != want {
				t.Errorf("%d CAs, want %d", len(s.Authorities), want)
			}
			serving := mustServe(t, s, now)
			if len(serving.Certificate) != test.chain {
				t.Errorf("a replica presents %d certificates, want %d", len(serving.Certificate), test.chain)
			}
			for _, before := range []State{test.memory, test.stored, s} {
				if !before.canSign(s.Revoked, now) {
					continue
				}
				if err := verify(encodeCertificates(before.Authorities), serving.Certificate, name, now); err != nil {
					t.Errorf("an API server refuses it: %v", err)
				}
				if err := verify(encodeCertificates(s.Authorities), mustServe(t, before, now).Certificate, name, now); err != nil {
					t.Errorf("the new bundle refuses a replica: %v", err)
				}
			}
			// All replicas agree on what was written.
			again := mustNext(t, test.memory, s, now)
			if got, want := mustEncode(t, again), mustEncode(t, s); !got.isEqual(want) {
				t.Error("the replica writes again")
			}
		})
	}
	if _, err := decodeState(names(), mustEncode(t, foreign)); err == nil {
		t.Error("a foreign CA is accepted")
	}
}

// A bundle has at most eight CAs. The oldest one leaves, and never the newest one.
func TestTooManyAuthorities(t *testing.T) {
	t.Parallel()
	var s, before State
	for i := range 12 {
		// Each time the Secret is gone, and all replicas have restarted: only the published bundle is left.
		before = s
		next, err := nextOf(names(), State{}, State{}, s.Authorities, begin().Add(time.Duration(i)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if s = next; len(s.Authorities) != min(i+1, MaxAuthorities) {
			t.Fatalf("%d CAs after %d starts", len(s.Authorities), i+1)
		}
	}
	oldest := slices.MinFunc(before.Authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	if contains(s.Authorities, oldest) || !s.canSign(nil, begin().Add(12*time.Hour)) {
		t.Error("another CA than the oldest one has left")
	}
}

// The CA that a full bundle loses is not the one that has signed the newest CA, although that one may be the oldest of all:
// replicas that have not seen the rotation yet use it. Calls to them failed.
func TestFullBundleKeepsThePredecessor(t *testing.T) {
	t.Parallel()
	stored, err := rotate(names(), new(State), begin())
	if err != nil {
		t.Fatal(err)
	}
	predecessor := stored.Authorities[0]
	for i := range MaxAuthorities - 1 { // others, which were published
		other, _, err := newAuthority(names(), begin().Add(time.Duration(i+1)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		stored.Authorities = append(stored.Authorities, other)
	}
	rotated, err := nextState(names(), new(State), stored, nil, begin().Add(rotationAge))
	if err != nil {
		t.Fatal(err)
	}
	if len(rotated.Authorities) != MaxAuthorities || contains(stored.Authorities, rotated.Authorities[0]) || !contains(rotated.Authorities, predecessor) {
		t.Errorf("of %d CAs, the predecessor of the newest one has left", len(rotated.Authorities))
	}
}

// Replicas that know more CAs than a bundle holds agree on the CAs that leave, also if the CAs were made in the same second. Once
// each replica added the CAs that the other had removed, without an end, and no bundle was published.
func TestReplicasAgreeOnTooManyAuthorities(t *testing.T) {
	t.Parallel()
	s := new(State)
	var known []*x509.Certificate
	for range MaxAuthorities + 2 {
		var err error
		if s, err = rotate(names(), &State{Authorities: known, Key: s.Key, Crosses: s.Crosses}, begin()); err != nil {
			t.Fatal(err)
		}
		known = s.Authorities
	}
	stored := &State{Authorities: known[:MaxAuthorities], Key: s.Key, Crosses: s.Crosses}
	other := slices.Clone(known[1:])
	slices.Reverse(other)
	memories := []*State{stored, {Authorities: append(known[:1:1], other...), Key: s.Key, Crosses: s.Crosses}}
	for attempt := range 20 {
		replica := attempt % len(memories)
		wanted, err := nextState(names(), memories[replica], stored, memories[replica].Authorities, begin())
		if err != nil {
			t.Fatal(err)
		}
		if attempt > 3 && !mustEncode(t, *wanted).isEqual(mustEncode(t, *stored)) {
			t.Fatalf("attempt %d: replica %d still writes another state", attempt, replica)
		}
		memories[replica], stored = wanted, wanted
	}
}

func mustEncode(t *testing.T, s State) data {
	t.Helper()
	d, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	return d
}
