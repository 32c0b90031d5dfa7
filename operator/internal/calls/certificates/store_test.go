package certificates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// Replicas that start at once without data have one CA in the end, and all answer under it.
func TestReplicasThatStartAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 100 {
		w := newWorld(t)
		if i%2 == 0 {
			w.create() // as from the manifests
		}
		w.start(3)
		w.waitUntilSettled()
		live := w.read()
		if s, err := decodeState(w.names, live.Data); err != nil || len(s.Authorities) != 1 {
			t.Fatalf("%d CAs: %v", len(s.Authorities), err)
		}
		w.mustCall(live.Data.Authorities)
		w.stopAll()
	}
}

// A caller is an API server. It calls all replicas, each on a new connection, until the test ends.
type caller struct {
	w *world
	// keeps reports whether the caller keeps a bundle although a newer one is published.
	keeps func(bundle []byte) bool
	calls atomic.Int64
}

// run calls until done is closed.
func (c *caller) run(done <-chan struct{}) {
	var bundle []byte
	for {
		select {
		case <-done:
			return
		default:
		}
		if err := c.call(&bundle); err != nil {
			c.w.t.Error(err)
			return
		}
		c.calls.Add(1)
	}
}

func (c *caller) call(bundle *[]byte) error {
	c.w.replicasMu.RLock()
	defer c.w.replicasMu.RUnlock()
	if len(*bundle) == 0 || !c.keeps(*bundle) {
		*bundle = c.w.replicas[0].store.Bundle()
	}
	return c.w.callLocked(*bundle)
}

// lastEnd returns when the last CA of a bundle ends.
func lastEnd(bundle []byte) (end time.Time) {
	all := decodeCertificates(bundle)
	for _, c := range all {
		if c.NotAfter.After(end) {
			end = c.NotAfter
		}
	}
	return end
}

// Rotations with restarts fail no call, also of API servers that keep a bundle as long as they can: through two
// rotations.
func TestRotationsUnderLoad(t *testing.T) {
	t.Parallel()
	const step = 5 * day
	rotations := 10
	if os.Getenv("YARE_WEBHOOK_FULL") != "" {
		rotations = 100
	}
	w := newWorld(t)
	w.start(3)
	w.waitUntilSettled()
	callers := []*caller{
		{w: w, keeps: func([]byte) bool { return false }},
		{w: w, keeps: func(b []byte) bool { return w.now().Before(lastEnd(b).Add(-200 * day)) }},
		{w: w, keeps: func(b []byte) bool { return w.now().Before(lastEnd(b).Add(-2 * step)) }},
	}
	done := make(chan struct{})
	var calling sync.WaitGroup
	for _, c := range callers {
		calling.Go(func() { c.run(done) })
	}
	authorities := make(map[string]bool)
	for range rotations * int(rotationAge/step+1) {
		w.moveTime(step)
		authorities[string(w.read().Data.Authorities)] = true
		if rand.N(10) == 0 {
			all := w.all()
			w.start(1)
			w.waitUntilSettled()
			w.stop(all[rand.N(len(all))])
		}
		if t.Failed() {
			break
		}
	}
	close(done)
	calling.Wait()
	for _, c := range callers {
		t.Logf("%d calls", c.calls.Load())
	}
	if len(authorities) < rotations {
		t.Errorf("%d bundles in %d rotations", len(authorities), rotations)
	}
}

// A Secret that is restored to before one rotation, or before two, fails no call: neither to replicas that run nor to
// replicas that start. The bundle that was published stays valid.
func TestRestoredSecret(t *testing.T) {
	t.Parallel()
	for _, rotations := range []int{1, 2} {
		w := newWorld(t)
		w.start(2)
		w.waitUntilSettled()
		backup := w.read().Data
		for range rotations {
			for range 36 {
				w.moveTime(5 * day)
			}
			w.moveTime(day)
		}
		published := w.read().Data
		if bytes.Equal(backup.Key, published.Key) {
			t.Fatal("there was no rotation")
		}
		w.replace(backup)
		w.start(1) // it may see the backup, or what the others make of it
		for range 20 {
			w.mustCall(published.Authorities)
		}
		w.waitUntilSettled()
		w.mustCall(published.Authorities)
		w.mustCall(backup.Authorities)

		// All replicas restart with the backup.
		w.stopAll()
		w.replace(backup)
		w.start(2)
		w.waitUntilSettled()
		w.mustCall(published.Authorities)
		w.mustCall(backup.Authorities)
		// Nothing that is published is lost.
		for _, r := range w.all() {
			bundle := r.store.BundleFor(published.Authorities)
			if all := decodeCertificates(bundle); len(all) < rotations+1 {
				t.Errorf("the new bundle has %d CAs", len(all))
			}
			w.mustCall(bundle)
		}
		w.stopAll()
	}
}

// Whatever somebody does to the Secret, running replicas go on under the published bundle, and put the Secret right.
func TestDamagedSecret(t *testing.T) {
	t.Parallel()
	foreign, err := nextOf(ServiceNames("db", "shop"), State{}, State{}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	foreignData := mustEncode(t, foreign)
	for what, damage := range map[string]func(*world){
		"deleted":                (*world).delete,
		"deleted, created empty": func(w *world) { w.delete(); w.create() },
		"emptied":                (*world).empty,
		"foreign":                func(w *world) { w.replace(foreignData) },
		"unreadable":             func(w *world) { w.replace(data{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}) },
		"without the key":        func(w *world) { d := w.read().Data; d.Key = []byte{}; w.replace(d) },
		"a foreign key":          func(w *world) { d := w.read().Data; d.Key = foreignData.Key; w.replace(d) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(2)
			w.waitUntilSettled()
			before := w.read()
			damage(w)
			w.mustCall(before.Data.Authorities)
			eventually(t, func() error {
				if !w.read().Data.isEqual(before.Data) {
					return errors.New("the Secret is not what it was")
				}
				return nil
			})
			w.mustCall(before.Data.Authorities)

			// All replicas restart meanwhile.
			w.stopAll()
			damage(w)
			w.start(2)
			w.waitUntilSettled()
			for _, r := range w.all() {
				w.mustCall(r.store.BundleFor(before.Data.Authorities))
			}
			eventually(t, func() error {
				s, err := decodeState(w.names, w.read().Data)
				if len(s.Authorities) != 2 && what != "without the key" && what != "a foreign key" || len(s.Authorities) > 2 {
					return errors.New("the Secret does not have the old CA and the new one")
				}
				return err
			})
		})
	}
}

// Whoever removes an installation may remove its Secret before the Deployment. The Deployment owns a Secret that is made again, and
// none is made once the Deployment is gone. Regression: the Secret stayed, and Helm refused the next installation.
func TestSecretWhileTheInstallationIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment = "web"
	deployments := kube.Namespaced[appsv1.Deployment](w.secret.client, "shop")
	made, err := deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	w.start(2)
	w.waitUntilSettled()
	want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: made.UID}}
	checkOwners := func() error {
		if s := w.read(); len(s.Data.Key) == 0 || !slices.Equal(s.Metadata.OwnerReferences, want) {
			return fmt.Errorf("the Secret has the owners %v, not %v", s.Metadata.OwnerReferences, want)
		}
		return nil
	}
	w.delete()
	eventually(t, checkOwners)
	w.empty() // the next apply keeps the reference
	eventually(t, checkOwners)
	if err := deployments.Delete(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	bundle := w.read().Data.Authorities
	w.delete() // as the collector
	eventually(t, func() error {
		if !strings.Contains(w.log.String(), "is not made again") {
			return errors.New("the log has no line about the Secret")
		}
		return nil
	})
	w.mustCall(bundle)
	if s := w.read(); s.Metadata.UID != "" {
		t.Error("the Secret was made again")
	}
}

// No call fails, and nobody makes a CA that others have made, while no two clocks differ by more than 30 days.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what     string
		server   time.Duration // how far the clock of the API servers is ahead
		replicas []time.Duration
	}{
		{"the API servers are ahead", 30 * day, []time.Duration{0, 0}},
		{"the API servers are behind", -30 * day, []time.Duration{0, 0}},
		{"a replica is ahead", 0, []time.Duration{30 * day, 0}},
		{"a replica is behind", 0, []time.Duration{0, -30 * day}},
		{"one replica is ahead, and another one behind", 0, []time.Duration{15 * day, -15 * day, 0}},
		{"all differ", 15 * day, []time.Duration{-15 * day, 0, 10 * day}},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.serverError = test.server
			w.startWithErrors(test.replicas...)
			w.waitUntilSettled()
			for range 80 {
				before := w.read().Data.Authorities
				w.moveTime(5 * day)
				w.mustCall(before)
				w.mustCall(w.read().Data.Authorities)
			}
			if n := strings.Count(w.log.String(), "made a webhook CA"); n != 3 {
				t.Errorf("there were %d new CAs in 400 days", n)
			}
			// A node gets another clock with its successor.
			w.stop(w.all()[0])
			w.start(1)
			w.waitUntilSettled()
			w.mustCall(w.read().Data.Authorities)
		})
	}
}

// A revoked CA that has expired by the clock of one replica, and not by that of another one, stays revoked until a rotation. Once
// each of the replicas undid what the other one had written.
func TestReplicasAgreeOnExpiredRevocations(t *testing.T) {
	t.Parallel()
	first, err := rotate(names(), new(State), begin())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := rotate(names(), &State{Revoked: first.Authorities}, begin().Add(200*day))
	if err != nil {
		t.Fatal(err)
	}
	ahead, behind := begin().Add(370*day), begin().Add(340*day)
	for _, now := range []time.Time{ahead, behind} {
		wanted, err := nextState(names(), stored, stored, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		if !mustEncode(t, *wanted).isEqual(mustEncode(t, *stored)) {
			t.Errorf("at %s a replica writes", now)
		}
	}
	later := begin().Add(400 * day)
	wanted, err := nextState(names(), stored, stored, nil, later)
	if err != nil || len(wanted.Revoked) != 0 {
		t.Errorf("after a rotation %d CAs that have expired are revoked: %v", len(wanted.Revoked), err)
	}
}

// A replica notices within an hour that its clock was set, or that its machine was suspended.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
		store, err := New(Config{
			Client: fakeserver.New().Client(), Namespace: "shop", Secret: "web-webhooks", Names: names(), Log: slog.New(slog.DiscardHandler), Now: now,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := store.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		for _, to := range []time.Duration{0, 100 * day, -100 * day, 1000 * day} {
			off.Store(int64(to))
			time.Sleep(time.Hour + time.Minute)
			if err := store.Ready(); err != nil {
				t.Errorf("with the clock set to %s: %v", to, err)
			}
		}
		cancel()
		running.Wait()
	})
}

// Replicas whose clocks differ by years do not agree on a CA. Their writes are limited, and the log says why.
func TestClocksThatDifferByYears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWithErrors(0, -1000*day)
	eventually(t, func() error {
		if !strings.Contains(w.log.String(), "is changed again and again") {
			return errors.New("no replica logs that the Secret is changed all the time")
		}
		return nil
	})
	if n := strings.Count(w.log.String(), "authorities="); n > 100 {
		t.Errorf("there were %d writes", n)
	}
}

// After two years, all certificates have expired. A replica answers soon after its start.
func TestAllExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(1)
	w.waitUntilSettled()
	before := w.read().Data
	w.stopAll()
	w.moveTime(730 * day)
	w.start(2)
	w.waitUntilSettled()
	after := w.read().Data
	w.mustCall(after.Authorities)
	w.mustCall(w.all()[0].store.BundleFor(before.Authorities))
	if s, err := decodeState(w.names, after); err != nil || len(s.Authorities) != 1 {
		t.Errorf("%d CAs: %v", len(s.Authorities), err)
	}
	if n := strings.Count(w.log.String(), "made a webhook CA"); n != 2 {
		t.Errorf("the log has %d new CAs", n)
	}
}

// A revoked CA leaves all bundles, and does not come back.
func TestRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(2)
	w.waitUntilSettled()
	before := w.read().Data
	if err := Revoke(t.Context(), w.config()); err != nil {
		t.Fatal(err)
	}
	w.waitUntilSettled()
	after := w.read().Data
	if err := w.call(before.Authorities); err == nil {
		t.Error("replicas use the revoked CA")
	}
	w.mustCall(after.Authorities)
	for _, r := range w.all() {
		if bundle := r.store.BundleFor(before.Authorities); !bytes.Equal(bundle, after.Authorities) {
			t.Error("the bundle has a revoked CA")
		}
	}
	w.replace(before) // from a backup
	w.replace(data{Revoked: []byte{}})
	eventually(t, func() error {
		if !w.read().Data.isEqual(after) {
			return errors.New("the Secret is not what it was")
		}
		return nil
	})
	w.mustCall(after.Authorities)
}

// A bundle that has what it needs stays as it is, byte for byte.
func TestBundleFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The channel is that of the time before the Store has run: a Store that runs can have its bundle at once.
	store, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	changed := store.Changed()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := store.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	<-changed
	own := w.read().Data.Authorities
	other := mustEncode(t, mustNext(t, State{}, State{}, time.Now())).Authorities
	foreign, err := nextOf(ServiceNames("db", "shop"), State{}, State{}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	both := append(bytes.Clone(other), own...)
	for _, test := range []struct {
		what            string
		published, want []byte
	}{
		{"nothing", nil, own},
		{"the same", own, own},
		{"text", []byte("text"), own},
		{"foreign", encodeCertificates(foreign.Authorities), own},
		{"with a foreign one", append(bytes.Clone(own), encodeCertificates(foreign.Authorities)...), own},
		{"with an unknown one", both, both},
	} {
		if got := store.BundleFor(test.published); !bytes.Equal(got, test.want) {
			t.Errorf("%s: the bundle is\n%s", test.what, got)
		}
	}
	// The unknown CA is in the Secret soon.
	eventually(t, func() error {
		if all := decodeCertificates(w.read().Data.Authorities); len(all) != 2 {
			return errors.New("the Secret lacks the CA of the bundle")
		}
		return nil
	})
}

// A Config without a name of the Secret is an error.
func TestConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.Secret = ""
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("without a Secret: %v", err)
	}
	store, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.GetCertificate(nil); err == nil {
		t.Error("there is a certificate before the start")
	}
	if err := store.Ready(); err == nil || store.BundleFor(nil) != nil || store.Status() != (Status{}) {
		t.Errorf("before the start: %v, %+v", err, store.Status())
	}
}
