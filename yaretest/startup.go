package yaretest

import (
	"context"
	"sync"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/operator"
)

// startup observes the start of a program.
type startup struct {
	// allStarted is closed when all parts have been started.
	allStarted chan struct{}
	// allSubscribed is closed when all controllers have subscribed to their streams.
	allSubscribed chan struct{}

	mu sync.Mutex
	// unstartedCount is the number of parts that have not been started.
	unstartedCount int
	// unsubscribed holds the names of the controllers that have not subscribed.
	unsubscribed map[string]bool
}

func newStartup(controllers []string, parts int) *startup {
	s := &startup{
		allStarted: make(chan struct{}), allSubscribed: make(chan struct{}),
		unstartedCount: parts, unsubscribed: make(map[string]bool),
	}
	for _, name := range controllers {
		s.unsubscribed[name] = true
	}
	if len(controllers) == 0 {
		close(s.allSubscribed)
	}
	return s
}

// observe returns a part that does the same as part, and reports its start to s.
func (s *startup) observe(part operator.Part) operator.Part {
	return observedPart{part, s}
}

func (s *startup) recordStart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unstartedCount--; s.unstartedCount == 0 {
		close(s.allStarted)
	}
}

// Subscribed implements [controller.Observer].
func (s *startup) Subscribed(name string, _ func() controller.QueueStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsubscribed[name] {
		delete(s.unsubscribed, name)
		if len(s.unsubscribed) == 0 {
			close(s.allSubscribed)
		}
	}
}

// Result implements [controller.Observer].
func (*startup) Result(controller.Result) {}

// observedPart is a part whose start is observed.
type observedPart struct {
	operator.Part
	startup *startup
}

// Unwrap returns the part, so that the program finds what it is.
func (p observedPart) Unwrap() operator.Part { return p.Part }

// Start starts the part with the startup as its observer.
func (p observedPart) Start(ctx context.Context, rt *controller.Runtime) error {
	p.startup.recordStart()
	observed := *rt
	observed.Observer = p.startup
	return p.Part.Start(ctx, &observed)
}
