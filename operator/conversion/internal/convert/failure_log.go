package convert

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// maxLogged bounds how many failures a failureLog remembers.
const maxLogged = 1024

// failureLog logs the failures of conversions. Each list of the objects repeats the failures of all of them, so a
// failure is logged once at the level error, and later at the level debug.
type failureLog struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]bool
}

// logFailures logs the failures of a conversion, without any content of the object.
func (l *failureLog) logFailures(k *Kind, c *Conversion) {
	for _, f := range c.Failures {
		level := slog.LevelDebug
		if l.rememberFailure(strings.Join([]string{k.Path(), c.Namespace, c.Name, f.From, f.To, f.Err.Error()}, "\n")) {
			level = slog.LevelError
		}
		log := l.log
		if f.Stack != "" {
			log = log.With("stack", f.Stack)
		}
		log.Log(context.Background(), level, "an object was converted incompletely", "kind", k.resource.String(),
			"namespace", c.Namespace, "name", c.Name, "from", f.From, "to", f.To, "error", f.Err.Error())
	}
}

// rememberFailure adds a failure. It reports whether the failure is new.
func (l *failureLog) rememberFailure(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged[key] {
		return false
	}
	if l.logged == nil || len(l.logged) >= maxLogged {
		l.logged = make(map[string]bool)
	}
	l.logged[key] = true
	return true
}
