package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube/wire"
)

// The kinds of faults of watches. They concern all watches of the resource Fault.Stream, in their step, after
// Fault.Events changes.
const (
	// WatchLag holds the events of a stream back for the rest of the step, and delivers them then.
	WatchLag Kind = "watch-lag"
	// WatchCut breaks the connection of one watch at the first later change.
	WatchCut Kind = "watch-cut"
	// WatchExpired breaks one watch in the same way, and answers the next watch from a version with 410.
	WatchExpired Kind = "watch-expired"
	// WatchMissed holds events as a lag does. At the end of the step the events are dropped, the watch breaks, and the
	// next watch from a version is answered with 410. So the program never sees the states in between.
	WatchMissed Kind = "watch-missed"
	// WatchTwice delivers this event and all later events twice, until the step ends. No API server does so.
	WatchTwice Kind = "watch-twice"
)

// watch is the family of faults of watches.
type watch struct{ baseFamily }

func (watch) Describe() Description {
	return Description{
		Group: "watch", Kinds: []Kind{WatchLag, WatchCut, WatchExpired, WatchMissed}, OptIn: []Kind{WatchTwice},
		IsDefault: true, WhyNotPlanned: "no change came to the program on a watch",
	}
}

// Plan plans all kinds for each resource and each step in which a change of the resource came.
func (w watch) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	var all []Fault
	d := w.Describe()
	for i, step := range in.Steps {
		for _, stream := range step.Streams {
			for _, k := range in.planned(slices.Concat(d.Kinds, d.OptIn)...) {
				all = append(all, Fault{Kind: k, Stream: stream, Step: i})
			}
		}
	}
	return newPlan(all), nil
}

func (watch) arm(a *Armed, s stepContext) (effect, error) {
	if a.fault.Stream == "" {
		return nil, fmt.Errorf("the fault %s has no stream", a.fault.Kind)
	}
	decisions := map[Kind]func(*proxy.Exchange, proxy.Event) proxy.Decision{
		WatchLag: func(*proxy.Exchange, proxy.Event) proxy.Decision {
			a.recordTriggered()
			return proxy.Decision{Until: a.ended}
		},
		WatchMissed: func(x *proxy.Exchange, _ proxy.Event) proxy.Decision {
			a.recordTriggered()
			return proxy.Decision{Until: a.ended, Break: func() { s.expirations.add(x, a) }}
		},
		WatchCut: func(*proxy.Exchange, proxy.Event) proxy.Decision {
			if !a.useOnce() {
				return proxy.Decision{}
			}
			return proxy.Decision{Break: a.recordTriggered}
		},
		WatchExpired: func(x *proxy.Exchange, _ proxy.Event) proxy.Decision {
			if !a.useOnce() {
				return proxy.Decision{}
			}
			return proxy.Decision{Break: func() { s.expirations.add(x, a) }}
		},
		WatchTwice: func(_ *proxy.Exchange, e proxy.Event) proxy.Decision {
			if !e.IsRepeated {
				a.recordTriggered()
			}
			return proxy.Decision{DeliversTwice: !e.IsRepeated}
		},
	}
	return streamEffect{stream: a.fault.Stream, after: a.fault.Events, decide: decisions[a.fault.Kind]}, nil
}

// streamEffect is the effect of a fault of a stream. It lets bookmarks pass.
type streamEffect struct {
	baseEffect
	// stream is the resource of the watches.
	stream string
	// after is how many changes of the step pass before decide is called.
	after  int
	decide func(*proxy.Exchange, proxy.Event) proxy.Decision
}

// Decide implements [proxy.Gate].
func (s streamEffect) Decide(x *proxy.Exchange, e proxy.Event) proxy.Decision {
	if x.Resource != s.stream || !e.IsChange || e.IsInitial || e.EarlierChanges < s.after {
		return proxy.Decision{}
	}
	return s.decide(x, e)
}

// expirations is what follows from watches that a fault has broken: the next watch from a version is answered with 410.
// A list or a streaming list in between cancels that answer, because it shows the program the present.
type expirations struct {
	baseEffect

	mu sync.Mutex
	// pending holds the faults of the broken watches, by what the watches select.
	pending map[proxy.Selection]*Armed
}

func newExpirations() *expirations { return &expirations{pending: map[proxy.Selection]*Armed{}} }

// add lets the next watch of a selection expire.
func (e *expirations) add(x *proxy.Exchange, a *Armed) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending[x.Selection()] = a
}

// removePending removes and returns the fault of a selection. It returns nil if there is none.
func (e *expirations) removePending(s proxy.Selection) *Armed {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.pending[s]
	delete(e.pending, s)
	return a
}

// RoundTrip implements [proxy.Hook].
func (e *expirations) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	if !x.IsAboutObjects() || x.Verb != wire.VerbWatch && x.Verb != wire.VerbList {
		return next(r)
	}
	a, version := e.removePending(x.Selection()), x.Query.Get("resourceVersion")
	if a == nil || x.Verb == wire.VerbList || x.IsStreamingList() || version == "" || version == "0" {
		return next(r)
	}
	a.recordTriggered()
	event := map[string]any{
		"type": "ERROR", "object": proxy.NewStatus(http.StatusGone, metav1.StatusReasonExpired, "too old resource version"),
	}
	return proxy.AnswerJSON(http.StatusOK, event), nil
}
