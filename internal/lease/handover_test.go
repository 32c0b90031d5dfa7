package lease

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// newElector returns an elector of a process of that name, with a fence of its own. Its requests go to server.
func newElector(t *testing.T, server wire.Handler, name string) *Elector {
	t.Helper()
	f := NewFence(realTime(), DefaultTiming())
	f.Handler(server)
	e, err := New(Config{
		Client: kube.NewClientFromHandler(f.Transport()), Fence: f, Namespace: "default", Name: "gadgets",
		Identity: name, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// hasBegun reports whether the term of e has begun.
func hasBegun(e *Elector) bool {
	select {
	case <-e.Elected():
		return true
	default:
		return false
	}
}

// A leader that ends in an orderly way is followed at once, and not when its lease expires.
func TestRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := func(name string) (*Elector, func()) {
			e := newElector(t, server, name)
			ctx, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			time.Sleep(time.Second)
			return e, func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if err := e.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		one, endOne := start("one")
		two, endTwo := start("two")
		time.Sleep(time.Hour)
		if !hasBegun(one) || hasBegun(two) || !two.HasSeen() {
			t.Fatalf("one leads: %t, two leads: %t", hasBegun(one), hasBegun(two))
		}
		released := time.Now()
		endOne()
		<-two.Elected()
		if took := time.Since(released); took > time.Second {
			t.Errorf("the take-over took %s", took)
		}
		// A new process of the same name takes the lease too.
		endTwo()
		three, endThree := start("three")
		if !hasBegun(three) {
			t.Error("nobody takes a lease that is free")
		}
		endThree()
	})
}

// A crash is followed when the lease expires, and not much later.
func TestCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		run := func(ctx context.Context, name string) *Elector {
			e := newElector(t, server, name)
			go e.Run(ctx)
			time.Sleep(time.Second)
			return e
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first, crash := context.WithCancel(ctx)
		run(first, "one")
		two := run(ctx, "two")
		time.Sleep(time.Minute)
		crash()
		crashed := time.Now()
		<-two.Elected()
		if took := time.Since(crashed); took < 26*time.Second || took > 31*time.Second {
			t.Errorf("the take-over took %s", took)
		}
	})
}

// The version of a term is that of the release, which follows the last write of the former leader. After a crash nobody
// knows the last write, so the version is that of the claim.
func TestTermVersion(t *testing.T) {
	t.Parallel()
	for name, isReleased := range map[string]bool{"release": true, "crash": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first, stop := context.WithCancel(ctx)
				one, two := newElector(t, server, "one"), newElector(t, server, "two")
				ended := make(chan error, 1)
				go func() { ended <- one.Run(first) }()
				time.Sleep(time.Second)
				if got, want := one.TermVersion(), strconv.Itoa(server.Version()); got != want {
					t.Errorf("the first term has the version %s, want that of the claim, %s", got, want)
				}
				stop()
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if isReleased {
					if err := one.Release(ctx); err != nil {
						t.Fatal(err)
					}
				}
				released := server.Version()
				server.Advance(10)
				go two.Run(ctx)
				synctest.Wait()
				if got := two.TermVersion(); got != "" && !isReleased {
					t.Errorf("the version of the term is %s before the term", got)
				}
				<-two.Elected()
				synctest.Wait()
				want := server.Version()
				if isReleased {
					want = released
				}
				if got := two.TermVersion(); got != strconv.Itoa(want) {
					t.Errorf("the version of the second term is %s, want %d", got, want)
				}
			})
		})
	}
}

// The streams of a program are opened after the first attempt. Where nobody led, the process leads by then, so its first lists
// show all writes of former leaders. They were opened before, and each start listed the metadata of all objects once more.
func TestFirstAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		one, two, refused := newElector(t, server, "one"), newElector(t, server, "two"), newElector(t, server, "refused")
		refused.leases.client = kube.NewClientFromHandler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
			return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusForbidden}
		}))
		refused.Client = refused.leases.client
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, e := range []*Elector{one, two, refused} {
			began := time.Now()
			running.Go(func() { _ = e.Run(ctx) })
			<-e.Attempted()
			if took := time.Since(began); took > time.Second {
				t.Errorf("the first attempt of %s took %s", e.Identity, took)
			}
			if e.IsLeading() != (e == one) || e.IsLeading() && e.TermVersion() == "" {
				t.Errorf("after its first attempt %s leads: %t, from version %q", e.Identity, e.IsLeading(), e.TermVersion())
			}
		}
		cancel()
		running.Wait()
	})
}

// Bug: somebody had edited the Lease to a duration of 68 years, by a typo. No replica led any more, and no log said why. The
// deletion of the Lease did not help, because its holder may still act.
func TestAbsurdDuration(t *testing.T) {
	t.Parallel()
	for name, isDeleted := range map[string]bool{"stays": false, "is deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				api := requests{server.Client(), "default", "gadgets"}
				l := leaseOf("somebody", math.MaxInt32, 7)
				l.Metadata.ResourceVersion = ""
				l, err := api.create(t.Context(), l)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				e, log := newElector(t, server, "one"), new(bytes.Buffer)
				e.Log = slog.New(slog.NewTextHandler(log, nil))
				began, after := time.Now(), 10*time.Minute
				go e.Run(ctx)
				time.Sleep(time.Minute)
				if isDeleted {
					after += time.Minute // the holder may have renewed it a moment before
					if err := deleteLease(api, l); err != nil {
						t.Fatal(err)
					}
				}
				<-e.Elected()
				if took := time.Since(began); took < after || took > after+time.Second {
					t.Errorf("the lease was taken after %s, want %s", took, after)
				}
				synctest.Wait()
				for _, want := range []string{"level=WARN", "holder=somebody", began.Add(10 * time.Minute).Format("15:04:05"), "counted=10m0s"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log does not have %q:\n%s", want, log)
					}
				}
			})
		})
	}
}

// deleteLease deletes the Lease as kubectl does.
func deleteLease(api requests, l *Lease) error {
	_, err := api.client.Do(context.Background(), &wire.Request{
		Verb: wire.VerbDelete, Resource: Resource(), Namespace: l.Metadata.Namespace, Name: l.Metadata.Name,
	})
	return err
}

// editLease returns a function that changes the record of the Lease by hand.
func editLease(edit func(r *record)) func(api requests, l *Lease) error {
	return func(api requests, l *Lease) error {
		r := recordOf(l)
		edit(&r)
		_, err := api.replace(context.Background(), withRecord(l, r))
		return err
	}
}

// Somebody who takes, edits or deletes the Lease ends the term, with the event that shows it and not with the next
// renewal. Somebody who labels the Lease does not.
func TestChangesByOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(api requests, l *Lease) error
		reason string // of the loss
	}{
		"labelled": {func(api requests, l *Lease) error {
			l.Metadata.Labels = map[string]string{"a": "b"}
			_, err := api.replace(context.Background(), l)
			return err
		}, ""},
		"taken":                            {editLease(func(r *record) { *r = record{holder: "other", durationSeconds: 15, renewed: 1} }), `it is held by "other"`},
		"emptied":                          {editLease(func(r *record) { r.holder = "" }), `it is held by "nobody"`},
		"released":                         {editLease(func(r *record) { r.holder, r.durationSeconds = "", 1 }), `it is held by "nobody"`},
		"renewed by a copy of the process": {editLease(func(r *record) { r.renewed += 5 }), "this process has not sent"},
		"shortened":                        {editLease(func(r *record) { r.durationSeconds = 3 }), "this process has not sent"},
		"deleted":                          {deleteLease, "somebody has deleted the Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				e := newElector(t, server, "one")
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				<-e.Elected()
				time.Sleep(10*DefaultTiming().Period + time.Second) // the next renewal is not due
				api := requests{server.Client(), "default", "gadgets"}
				l, err := api.get(t.Context())
				if err == nil {
					err = test.change(api, l)
				}
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				isLost := test.reason != ""
				if e.Fence.term.check() != nil != isLost {
					t.Errorf("the lease is lost with the event: %t", !isLost)
				}
				time.Sleep(time.Minute)
				if e.Fence.term.check() != nil != isLost {
					t.Errorf("the lease is lost: %t", !isLost)
				}
				cancel()
				if err := <-ended; (err != nil) != isLost || isLost && !strings.Contains(err.Error(), test.reason) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// A server that is restored to before a term has a Lease without the term. So the term ends with the next renewal, and no
// stream has to reach the version of the term on the restored server.
func TestRestorationToBeforeTheTermEndsIt(t *testing.T) {
	t.Parallel()
	for name, former := range map[string]*record{
		"no Lease":            nil,
		"a released Lease":    {durationSeconds: 1},
		"a Lease of a former": {holder: "former", durationSeconds: 30, renewed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				e := newElector(t, server, "one")
				if former != nil {
					l := withRecord(&Lease{Metadata: metav1.ObjectMeta{Namespace: "default", Name: "gadgets"}}, *former)
					if _, err := (requests{server.Client(), "default", "gadgets"}).create(t.Context(), l); err != nil {
						t.Fatal(err)
					}
				}
				backup := server.Snapshot()
				ended := make(chan error, 1)
				go func() { ended <- e.Run(t.Context()) }()
				<-e.Elected()
				server.Advance(1000)
				time.Sleep(3 * DefaultTiming().Period)
				server.Restore(backup)
				select {
				case err := <-ended:
					if err == nil || e.Fence.term.check() == nil {
						t.Errorf("the term goes on: %v", err)
					}
				case <-time.After(2 * DefaultTiming().Period):
					t.Error("the term goes on after the next renewal")
				}
			})
		})
	}
}

// A Lease that somebody deletes or empties gives no second leader before the end that the standby has seen, even if
// the leader learns nothing of it. The standby may have missed renewals.
func TestLeaseDeletedWhileTheLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(api requests, l *Lease) error{
		"deleted":          deleteLease,
		"emptied":          editLease(func(r *record) { r.holder = "" }),
		"emptied entirely": editLease(func(r *record) { *r = record{} }),
		"shortened":        editLease(func(r *record) { r.durationSeconds = 3 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				defer running.Wait()
				defer cancel()
				var isCut atomic.Bool
				network := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					if r.Verb == wire.VerbWatch || isCut.Load() { // the watch of the leader never works
						<-ctx.Done()
						return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: ctx.Err()}
					}
					return server.Do(ctx, r)
				})
				one, two := newElector(t, network, "one"), newElector(t, server, "two")
				running.Go(func() { _ = one.Run(ctx) })
				<-one.Elected()
				running.Go(func() { _ = two.Run(ctx) })
				time.Sleep(10*DefaultTiming().Period + time.Second)
				isCut.Store(true)
				api := requests{server.Client(), "default", "gadgets"}
				l, err := api.get(t.Context())
				if err == nil {
					err = change(api, l)
				}
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for !hasBegun(two) {
					time.Sleep(10 * time.Millisecond)
					if one.Fence.term.check() == nil && hasBegun(two) {
						t.Fatalf("two leaders %s after the change", time.Since(began))
					}
				}
				if took := time.Since(began); took > 31*time.Second {
					t.Errorf("the take-over took %s", took)
				}
			})
		})
	}
}

// The writer of the log blocks, and then the lease is lost. WaitLost returns all the same.
func TestLossWithABlockedLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		e := newElector(t, server, "one")
		unblock := make(chan struct{})
		e.Log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { <-unblock; return len(p), nil }), nil))
		ended := make(chan error, 1)
		go func() { ended <- e.Run(t.Context()) }()
		began := time.Now() // the line that this replica leads blocks: no renewal follows
		if !e.WaitLost(t.Context()) || !e.IsLost() || e.IsLeading() {
			t.Error("the lease is not lost")
		}
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("the loss is found after %s", took)
		}
		close(unblock)
		if err := <-ended; err == nil {
			t.Error("the elector has not returned that the lease is lost")
		}
	})
}

// writerFunc is a function that writes.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A renewal that gets no answer names what may be the cause.
func TestRenewalThatAWebhookHoldsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		server.Before(func(ctx context.Context, r *wire.Request) error {
			if r.Verb == wire.VerbUpdate {
				<-ctx.Done()
				return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: ctx.Err()}
			}
			return nil
		})
		e := newElector(t, server, "one")
		err := e.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "a webhook that covers Leases") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A term counts from when the last renewal was sent, however late the answer comes.
func TestSlowAnswersDoNotProlongTheTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		var isDown atomic.Bool
		var last atomic.Int64 // when the last renewal that succeeded was sent, in nanoseconds
		server.Before(func(_ context.Context, r *wire.Request) error {
			switch {
			case isDown.Load():
				return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
			case r.Verb == wire.VerbUpdate:
				last.Store(time.Now().UnixNano())
			}
			return nil
		})
		server.After(func(_ context.Context, r *wire.Request) error {
			if r.Verb == wire.VerbUpdate {
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		e := newElector(t, server, "one")
		f := e.Fence
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		<-e.Elected()
		for range 3 {
			for before := last.Load(); last.Load() == before; {
				time.Sleep(time.Second / 2)
			}
		}
		isDown.Store(true)
		deadline := time.Unix(0, last.Load()).Add(DefaultTiming().Deadline)
		time.Sleep(time.Until(deadline.Add(-time.Second)))
		if err := f.term.check(); err != nil {
			t.Errorf("a second before the deadline: %v", err)
		}
		time.Sleep(time.Until(deadline.Add(time.Second)))
		if f.term.check() == nil {
			t.Error("the term goes on a second after the deadline")
		}
		if err := <-ended; err == nil {
			t.Error("the elector has not returned that the lease is lost")
		}
	})
}
