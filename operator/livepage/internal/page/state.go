package page

import (
	"context"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// minCountTime and maxCountTime bound the time between two counts of the objects. Between them, a count takes a
	// twentieth of the time.
	minCountTime = 2 * time.Second
	maxCountTime = 10 * time.Second
	countFactor  = 20
)

// Sources are where a page gets the state of its program. The functions are called concurrently, and only for a reader.
type Sources struct {
	// Program is the name of the program, and Versions has the versions of the program, of yare and of Go.
	Program, Versions string
	// Streams returns the streams of the cache, and UncachedStreams those that parts follow by themselves.
	Streams         func() []cache.Stats
	UncachedStreams func() []follow.StreamState
	// Cached answers reads from the cache. It must send no request.
	Cached wire.Handler
	// Reconciled are the resources that the program reconciles.
	Reconciled []wire.Resource
	// Leadership returns whether this replica leads, in words. It is empty without leader election.
	Leadership func() string
	// UnreadyReasons returns why the program is not ready.
	UnreadyReasons func() []string
	// CertificateEnds returns when the certificates of the program end, by what they are for, in words.
	CertificateEnds func() map[string]time.Time
	// Memory returns the memory of the process.
	Memory func() Memory
}

// Memory is the memory of a process, in bytes. 0 stands for an unknown number.
type Memory struct {
	Resident, Heap, Limit float64
	Goroutines            int
}

// kindCount has the objects of a kind that the cache holds.
type kindCount struct {
	Resource wire.Resource
	// Count is the number of objects, and Deleting the number of those that are being deleted.
	Count, Deleting int
	// Conditions has the numbers of objects with each status of each condition, in the order in which they were found.
	Conditions []conditionCount
}

// conditionCount is the number of objects whose condition of a type has a status.
type conditionCount struct {
	Type, Status string
	Count        int
}

// objectCounter counts the objects of the reconciled kinds. All readers share the last count. It is safe for concurrent
// use.
type objectCounter struct {
	mu    sync.Mutex
	last  []kindCount
	dueAt time.Time
}

// counts returns the last counts, or new ones when they are due.
func (c *objectCounter) counts(ctx context.Context, s *Sources, streams []cache.Stats) []kindCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.dueAt) {
		return c.last
	}
	c.last = make([]kindCount, len(s.Reconciled))
	for i := range c.last {
		count := &c.last[i]
		count.Resource = s.Reconciled[i]
		for j := range streams {
			stream := &streams[j].Stream
			if stream.Resource == count.Resource && streams[j].Synced && stream.Representation == wire.Full {
				count.addStream(ctx, s.Cached, stream)
			}
		}
	}
	c.dueAt = began.Add(min(max(minCountTime, countFactor*time.Since(began)), maxCountTime))
	return c.last
}

// addStream adds the objects of a stream.
func (c *kindCount) addStream(ctx context.Context, cached wire.Handler, s *wire.Stream) {
	response, err := cached.Do(ctx, &wire.Request{Verb: wire.VerbList, Resource: s.Resource, Namespace: s.Namespace})
	if err != nil || response.Items == nil {
		return // the stream has a selector, or its store is in doubt
	}
	for item, err := range response.Items {
		c.Count++
		if err != nil {
			continue
		}
		o := decodeObject(item)
		if o.Metadata.DeletionTimestamp != "" {
			c.Deleting++
		}
		for i := range o.Status.Conditions {
			c.addCondition(o.Status.Conditions[i].Type, o.Status.Conditions[i].Status)
		}
	}
}

// addCondition counts a condition. More than 32 different ones do not count.
func (c *kindCount) addCondition(conditionType, status string) {
	for i := range c.Conditions {
		if each := &c.Conditions[i]; each.Type == conditionType && each.Status == status {
			each.Count++
			return
		}
	}
	if len(c.Conditions) < 32 {
		c.Conditions = append(c.Conditions, conditionCount{conditionType, status, 1})
	}
}

// condition is a condition of an object, as far as the page shows it.
type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// maxConditions bounds the conditions of one write or change that are kept.
const maxConditions = 8

// conditionsChanged returns the conditions of after that have another status than in before.
func conditionsChanged(before, after *shownObject) (changed []condition) {
	for i := range after.Status.Conditions {
		now := &after.Status.Conditions[i]
		if len(changed) == maxConditions || before.hasCondition(now.Type, now.Status) {
			continue
		}
		changed = append(changed, condition{
			Type: shortened(now.Type, maxValue), Status: shortened(now.Status, maxValue),
			Reason: shortened(now.Reason, maxValue), Message: shortened(now.Message, maxValue),
		})
	}
	return changed
}
