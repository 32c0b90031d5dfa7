package cache

import (
	"sync"

	"github.com/yare-go/yare/internal/follow"
)

// publisher passes the changes of one stream to its subscribers. It holds its lock while the store changes
// and while the changes are published. So a subscriber that joins receives each object and each change once:
// what is in the store before the subscriber joins, and every change after that.
type publisher struct {
	mu sync.Mutex
	// subscriptions holds the subscriptions that receive changes.
	subscriptions []*Subscription
}

// update lets u apply a change to the store, and publishes the changes that follow from it.
func (p *publisher) update(u *updater, c follow.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes := u.apply(c)
	for _, change := range changes {
		p.publishLocked(change)
	}
	clear(changes) // the packed objects of an old change can be freed
}

// publish passes c to all subscribers.
func (p *publisher) publish(c Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publishLocked(c)
}

// publishLocked passes c to all subscribers, and drops the subscriptions that have been closed.
func (p *publisher) publishLocked(c Change) {
	open := p.subscriptions[:0]
	for _, sub := range p.subscriptions {
		if sub.publish(c) {
			open = append(open, sub)
		}
	}
	clear(p.subscriptions[len(open):])
	p.subscriptions = open
}

// join adds a subscriber to a running stream. The subscriber receives all objects of the store,
// and every change from then on.
func (p *publisher) join(sub *Subscription, s *Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for o := range s.All(Filter{}) {
		if !sub.publish(Change{Type: Added, After: o.Record, after: o.packed}) {
			return
		}
	}
	if !s.IsSynced() || sub.publish(Change{Type: Synced}) {
		p.subscriptions = append(p.subscriptions, sub)
	}
}
