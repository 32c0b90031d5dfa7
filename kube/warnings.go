package kube

import (
	"context"
	"log/slog"
	"sync"

	"github.com/yare-go/yare/kube/wire"
)

// maxWarnings bounds how many different texts of warnings a client remembers.
const maxWarnings = 256

// warnOnce returns a function that logs each text once. It forgets all texts after maxWarnings
// different ones.
func warnOnce() func(context.Context, *wire.Request, string) {
	var mu sync.Mutex
	logged := make(map[string]bool)
	return func(ctx context.Context, r *wire.Request, text string) {
		mu.Lock()
		isLogged := logged[text]
		if len(logged) >= maxWarnings {
			clear(logged)
		}
		logged[text] = true
		mu.Unlock()
		if !isLogged {
			slog.WarnContext(ctx, "the server warns", "verb", r.Verb, "resource", r.Resource.String(), "warning", text)
		}
	}
}
