package controller

import (
	"log/slog"
	"sync"

	"github.com/yare-go/yare/kube/wire"
)

// uncachedLists logs, once for each stream, that reconciles list objects of a watched kind from the server, because the
// selectors of the stream leave out some of them.
type uncachedLists struct {
	log           *slog.Logger
	subscriptions *subscriptions

	mu     sync.Mutex
	logged map[wire.Stream]bool
}

func newUncachedLists(log *slog.Logger, s *subscriptions) *uncachedLists {
	return &uncachedLists{log: log, subscriptions: s, logged: make(map[wire.Stream]bool)}
}

// report logs that the server has answered the list r, if a wider watch would have answered r.
func (u *uncachedLists) report(r *wire.Request) {
	if r.Live || u.subscriptions.coversRead(r) {
		return
	}
	for _, sub := range u.subscriptions.all {
		if !sub.coversApartFromSelectors(r) || !u.isFirst(sub.stream) {
			continue
		}
		listed := wire.Stream{
			Resource: r.Resource, Namespace: r.Namespace, LabelSelector: r.Query.Get("labelSelector"),
			FieldSelector: r.Query.Get("fieldSelector"),
		}
		u.log.Warn("a list of a reconcile is a request each time, because controller.Select leaves out objects that the list may select",
			"list", listed.String(), "watch", sub.stream.String(),
			"hint", "add the selectors of the watch to the list, or watch without controller.Select; list by the method Live of the client if the request is wanted")
	}
}

// isFirst reports whether nothing was logged about a stream, and records that it is.
func (u *uncachedLists) isFirst(s wire.Stream) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	isFirst := !u.logged[s]
	u.logged[s] = true
	return isFirst
}
