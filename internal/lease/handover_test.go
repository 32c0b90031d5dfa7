package lease

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// A leader that ends in an orderly way is followed at once, and not when its lease expires.
func TestRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := func(name string) (*Elector, func()) {
			f := NewFence(realTime(), DefaultTiming())
			f.Handler(server)
			e, err := New(Config{
				Client: kube.NewClientFromHandler(f.Transport()), Fence: f, Namespace: "default", Name: "gadgets",
				Identity: name, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
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
		leads := func(e *Elector) bool {
			select {
			case <-e.Elected():
				return true
			default:
				return false
			}
		}
		one, endOne := start("one")
		two, endTwo := start("two")
		time.Sleep(time.Hour)
		if !leads(one) || leads(two) || !two.HasSeen() {
			t.Fatalf("one leads: %t, two leads: %t", leads(one), leads(two))
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
		if !leads(three) {
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
			f := NewFence(realTime(), DefaultTiming())
			f.Handler(server)
			e, err := New(Config{
				Client: kube.NewClientFromHandler(f.Transport()), Fence: f, Namespace: "default", Name: "gadgets",
				Identity: name, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
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
		if took := time.Since(crashed); took < 13*time.Second || took > 16*time.Second {
			t.Errorf("the take-over took %s", took)
		}
	})
}

// Somebody who takes or deletes the Lease ends the term. Somebody who labels it does not.
func TestChangesByOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(api requests, l *Lease) error
		isLost bool
	}{
		"labelled": {func(api requests, l *Lease) error {
			l.Metadata.Labels = map[string]string{"a": "b"}
			_, err := api.replace(context.Background(), l)
			return err
		}, false},
		"taken": {func(api requests, l *Lease) error {
			_, err := api.replace(context.Background(), withRecord(l, record{holder: "other", durationSeconds: 15, renewed: 1}))
			return err
		}, true},
		"deleted": {func(api requests, l *Lease) error {
			_, err := api.client.Do(context.Background(), &kube.Request{
				Verb: kube.VerbDelete, Resource: Resource(), Namespace: l.Metadata.Namespace, Name: l.Metadata.Name,
			})
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				f := NewFence(realTime(), DefaultTiming())
				f.Handler(server)
				e, err := New(Config{
					Client: kube.NewClientFromHandler(f.Transport()), Fence: f, Namespace: "default", Name: "gadgets",
					Identity: "one", Log: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				<-e.Elected()
				api := requests{server.Client(), "default", "gadgets"}
				l, err := api.get(t.Context())
				if err == nil {
					err = test.change(api, l)
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if isLost := f.term.check() != nil; isLost != test.isLost {
					t.Errorf("the lease is lost: %t", isLost)
				}
				cancel()
				if err := <-ended; (err != nil) != test.isLost {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// A term counts from when the last renewal was sent, however late the answer comes.
func TestSlowAnswersDoNotProlongTheTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		var isDown atomic.Bool
		var last atomic.Int64 // when the last renewal that succeeded was sent, in nanoseconds
		server.Before(func(_ context.Context, r *kube.Request) error {
			switch {
			case isDown.Load():
				return &kube.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
			case r.Verb == kube.VerbUpdate:
				last.Store(time.Now().UnixNano())
			}
			return nil
		})
		server.After(func(_ context.Context, r *kube.Request) error {
			if r.Verb == kube.VerbUpdate {
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		f := NewFence(realTime(), DefaultTiming())
		f.Handler(server)
		e, err := New(Config{
			Client: kube.NewClientFromHandler(f.Transport()), Fence: f, Namespace: "default", Name: "gadgets",
			Identity: "one", Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
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
