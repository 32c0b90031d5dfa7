package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// worker takes one object after the other, until ctx ends. The calls themselves run under
// work, which ends later.
func (e *engine[T]) worker(ctx, work context.Context) {
	for {
		item, ok := e.queue.Get(ctx)
		if !ok {
			return
		}
		e.queue.Done(item.Key, e.round(work, item))
	}
}

// round does what is due for one object.
func (e *engine[T]) round(ctx context.Context, item queue.Item) queue.Outcome {
	started := time.Now()
	t, err := e.read(ctx, item.Key)
	if t == nil && err == nil {
		e.drop(item.Key, "")
		return queue.Outcome{Forget: true}
	}
	ref := kube.Ref{Resource: e.kind.Resource, Namespace: item.Key.Namespace, Name: item.Key.Name}
	result := Result{Controller: e.name, Object: ref, Causes: item.Causes.String(), Waited: item.Waited}
	if err != nil {
		// One that does not fit its type is up to whoever changes it.
		if _, misfit := errors.AsType[*kube.DecodeError](err); misfit {
			err = Terminal(err)
		}
		result.Err = err
		return e.finish(nil, item.Key, result, started)
	}
	obj := e.object(t)
	ref.UID = obj.GetUID()
	result.Object = ref
	result.Cleanup = obj.GetDeletionTimestamp() != nil
	held := hasFinalizer(obj, e.finalizer)
	if result.Cleanup && !held {
		// Others may still hold it; for this controller it is gone.
		e.drop(item.Key, ref.UID)
		return queue.Outcome{Forget: true}
	}
	record := &recorder{
		begins: e.echoes.begin,
		ends: func(at place, made echo) {
			for _, t := range e.echoes.end(at, made) {
				e.trigger(t)
			}
		},
		over: func() error { return context.Cause(ctx) },
	}
	client := e.clientFor(item.Key, ref, record)
	var action Action
	switch {
	case result.Cleanup:
		action, err = e.call(ctx, "the cleanup function", e.cleanup, t, client)
		if err == nil && !action.open {
			err = e.removeFinalizer(ctx, client, obj)
		}
	default:
		now := t
		if e.finalizer != "" && !held {
			now, err = e.addFinalizer(ctx, client, t)
		}
		// Without one it is being deleted, or gone, and what tells so is on its way.
		if err == nil && now != nil {
			t = now
			action, err = e.call(ctx, "the reconcile function", e.reconcile, t, client)
		}
	}
	result.Reads, result.Writes = record.seen()
	result.Err, result.Next = err, action.after
	return e.finish(t, item.Key, result, started)
}

// read is the object of key, or nil if there is none that this controller has to do with.
// It is at least as new as what triggered the round.
func (e *engine[T]) read(ctx context.Context, key queue.Key) (t *T, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, panicked("the decoding of "+e.kind.Resource.String(), p)
		}
	}()
	stored, there := e.stored(key)
	selecting := len(e.self.selectors) > 0
	if selecting && !there {
		return nil, nil // it does not match, or does so no more
	}
	api := e.api(e.client, key.Namespace)
	t, err = api.Get(ctx, key.Name)
	if selecting {
		// What answered may be another stream, and behind the own one.
		switch {
		case kube.IsNotFound(err):
			t, err = e.api(e.runtime.Client, key.Namespace).Get(ctx, key.Name)
		case err == nil && ident.IsNewer(stored.ResourceVersion, e.object(t).GetResourceVersion()):
			var object []byte
			if object, err = stored.Bytes(); err == nil {
				t, err = api.Decode(object)
			}
		}
	}
	switch {
	case kube.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return t, nil
}

// clientFor is the client of one call.
func (e *engine[T]) clientFor(key queue.Key, self kube.Ref, record *recorder) *kube.Client {
	return e.client.With(func(next kube.Handler) kube.Handler {
		isTrigger := func(r kube.Resource, live *cache.Live) bool { return e.triggersSelf(key, self, r, live) }
		record.next = ownership(e.applies.Handler(e.adoption.handler(next, self), isTrigger), self)
		return record
	})
}

// triggersSelf reports whether a change to the object live of resource r would trigger the
// reconcile of key again. Predicates do not count: their author says that the changes that
// they reject do not matter.
func (e *engine[T]) triggersSelf(key queue.Key, self kube.Ref, r kube.Resource, live *cache.Live) bool {
	for _, sub := range e.subs {
		s := sub.source
		if s.kind.Resource != r || len(s.selectors) > 0 && !sub.shows(live.Record) {
			continue
		}
		// A mapping function sees an object in the form of its own stream.
		object := live.Bytes
		switch {
		case sub.stream.Representation == kube.MetadataOnly:
			object = live.Metadata
		case live.Representation == kube.MetadataOnly:
			object = func() ([]byte, error) { return nil, errors.New("only the metadata is cached") }
		}
		keys, err := s.keys(e.runtime.Client, e.kind.Resource, live.Record, object)
		if err != nil {
			continue
		}
		for _, k := range keys {
			if k.Key == key && (k.uid == "" || k.uid == string(self.UID)) {
				return true
			}
		}
	}
	return false
}

// call calls one of the author's functions.
func (e *engine[T]) call(ctx context.Context, what string, f Func[T], t *T, c *kube.Client) (action Action, err error) {
	defer func() {
		if p := recover(); p != nil {
			action, err = Action{}, panicked(what, p)
		}
	}()
	return f(ctx, t, c)
}

// finish says when to come again, and tells the result. The object is nil if it could not
// be read. What an error and an action say at once is decided by the error.
func (e *engine[T]) finish(t *T, key queue.Key, result Result, started time.Time) queue.Outcome {
	result.Duration = time.Since(started)
	if result.Err == nil {
		e.drop(key, "")
		e.report(t, nil, result)
		return queue.Outcome{RequeueAfter: result.Next}
	}
	known := e.of(key, result.Object.UID)
	known.wrong++
	result.Attempt = known.wrong
	outcome := queue.Outcome{Failed: true}
	switch {
	case IsTerminal(result.Err):
		known.failures, known.conflicts = 0, 0
		result.Next, outcome.Failed = 0, false
	case isConflict(result.Err):
		known.conflicts++
		result.Next = exponential(firstConflict, longestConflict, known.conflicts)
	default:
		known.failures++
		known.conflicts = 0
		result.Next = e.wait(t, result.Err, known.failures)
	}
	outcome.RetryAfter = result.Next
	e.report(t, known, result)
	return outcome
}

// wait asks the policy, and the server.
func (e *engine[T]) wait(t *T, err error, attempt int) (d time.Duration) {
	d = DefaultBackoff(attempt)
	if t != nil {
		e.guard("the backoff policy", func() { d = max(e.backoff(t, err, attempt), time.Millisecond) })
	}
	return max(d, askedWait(err))
}

// guard calls what the author gave and nothing depends on: a panic in it is told, and that
// is all.
func (e *engine[T]) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			err := panicked(what, p)
			e.log.Error(fmt.Sprintf("%s failed", what), append([]any{"controller", e.name, "error", err}, stackOf(err, true)...)...)
		}
	}()
	f()
}
