package authorizer

import (
	"golang.org/x/time/rate"
)

const (
	// questionsPerSecond is how many unknown tokens of one source address an Authorizer asks about, after a burst of
	// questionBurst.
	questionsPerSecond = 5
	questionBurst      = 10
	// maxSources bounds how many source addresses an Authorizer remembers.
	maxSources = 1024
)

// sourceLimits limits the rate of questions by source address. The zero value cannot be used.
type sourceLimits struct{ bySource map[string]*rate.Limiter }

func newSourceLimits() sourceLimits { return sourceLimits{make(map[string]*rate.Limiter)} }

// takeQuestion counts a question of a source, and reports whether it is within the rate. If there are too many sources,
// those that have asked nothing lately are forgotten, and then any others.
func (l sourceLimits) takeQuestion(source string) bool {
	limiter := l.bySource[source]
	if limiter == nil {
		l.makeRoom()
		limiter = rate.NewLimiter(questionsPerSecond, questionBurst)
		l.bySource[source] = limiter
	}
	return limiter.Allow()
}

// makeRoom forgets sources if there are too many.
func (l sourceLimits) makeRoom() {
	if len(l.bySource) < maxSources {
		return
	}
	for source, limiter := range l.bySource {
		if limiter.Tokens() >= questionBurst {
			delete(l.bySource, source)
		}
	}
	for source := range l.bySource {
		if len(l.bySource) < maxSources {
			return
		}
		delete(l.bySource, source)
	}
}
