// Package objectcounts counts the objects of a kind with conversions: all objects, those with a kept value, and those
// that are incomplete.
//
// A [Counter] counts the objects in one version, because an object can be incomplete in one version and complete in
// another one. It holds the names of the objects that have annotations of conversions, and no other objects. For
// example, after a list of three objects in v2:
//
//	a   no annotation
//	b   versions.yare.dev/v1.0123456789abcdef
//	c   versions.yare.dev/incomplete
//
//	All 3, Annotated 2, Incomplete 1
package objectcounts

import (
	"bytes"
	"context"
	"sync"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Counts are numbers of objects.
type Counts struct {
	// All is the number of all objects, Annotated of those with an annotation of conversions, and Incomplete of those from
	// which a conversion has left something out.
	All, Annotated, Incomplete int
}

// Counter counts the objects of the streams of one version, which have no object in common. The zero value has no
// stream. A Counter is safe for concurrent use.
type Counter struct {
	mu sync.Mutex
	// streams is the number of streams, and listed is the number of those that have been listed.
	streams, listed int
	all             int
	// annotated holds the objects with annotations of conversions. The value is true for an incomplete object.
	annotated map[kube.Key]bool
}

// Counts returns the numbers. It reports false until each stream has been listed.
func (c *Counter) Counts() (Counts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := Counts{All: c.all, Annotated: len(c.annotated)}
	for _, isIncomplete := range c.annotated {
		if isIncomplete {
			n.Incomplete++
		}
	}
	return n, c.streams > 0 && c.listed >= c.streams
}

// AddStream adds a stream, which [Counter.Follow] or [Counter.Subscribe] then counts.
func (c *Counter) AddStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams++
}

// Follow counts the objects of a stream until ctx ends. It lists and watches their metadata by client, and keeps
// nothing of an object without an annotation of conversions. It calls report with each error. The stream goes on after
// an error.
func (c *Counter) Follow(ctx context.Context, client *kube.Client, s wire.Stream, report func(error)) {
	s.Representation = wire.MetadataOnly
	isListed := false
	for change, err := range follow.Changes(ctx, client, s) {
		switch {
		case err != nil:
			report(err)
		case change.Type == follow.ChangeAdded:
			c.record(change.Key, 1, annotationsIn(change.Metadata))
		case change.Type == follow.ChangeModified:
			c.record(change.Key, 0, annotationsIn(change.Metadata))
		case change.Type == follow.ChangeDeleted:
			c.record(change.Key, -1, nil)
		case change.Type == follow.ChangeListed && !isListed:
			isListed = true
			c.recordList()
		}
	}
}

// Subscribe counts the objects of a stream that a program keeps in its cache, until ctx ends. It reads the content of
// an object only if its annotations have changed.
func (c *Counter) Subscribe(ctx context.Context, caches *cache.Cache, s wire.Stream) error {
	var text []byte
	annotations := func(change cache.Change) []byte {
		if change.After.AnnotationsHash == 0 {
			return nil
		}
		var err error
		if text, err = change.AfterObject().AppendBytes(text[:0]); err != nil {
			return nil // the program reports it
		}
		scanner := jsonscan.New(text)
		for _, member := range []string{"metadata", "annotations"} {
			if isFound, err := scanner.Find(member); err != nil || !isFound {
				return nil
			}
		}
		found, _ := scanner.Raw() // the cache has read it
		return found
	}
	subscription, err := caches.Open(ctx, s, func(change cache.Change) {
		switch change.Type {
		case cache.Added:
			c.record(change.After.Key(), 1, annotations(change))
		case cache.Modified:
			if change.Before.AnnotationsHash != change.After.AnnotationsHash {
				c.record(change.After.Key(), 0, annotations(change))
			}
		case cache.Deleted:
			c.record(change.Before.Key(), -1, nil)
		case cache.Synced:
			c.recordList()
		}
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	subscription.Close()
	return nil
}

// record records an object that was added (1), modified (0) or deleted (-1), with the JSON of its annotations.
func (c *Counter) record(key kube.Key, delta int, annotations []byte) {
	isAnnotated, isIncomplete := false, false
	if bytes.Contains(annotations, []byte(ident.ConversionPrefix)) {
		scanner := jsonscan.New(annotations)
		_ = scanner.Members(func(name []byte) error { // the server has written it
			isAnnotated = isAnnotated || bytes.HasPrefix(name, []byte(ident.ConversionPrefix))
			isIncomplete = isIncomplete || string(name) == ident.IncompleteAnnotation
			return scanner.Skip()
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += delta
	switch {
	case !isAnnotated:
		delete(c.annotated, key)
	case c.annotated == nil:
		c.annotated = make(map[kube.Key]bool)
		fallthrough
	default:
		c.annotated[key] = isIncomplete
	}
}

// recordList records that a stream has been listed.
func (c *Counter) recordList() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed++
}

// annotationsIn returns the JSON of the annotations among the members of a metadata, or nil.
func annotationsIn(metadata []jsonscan.Member) []byte {
	for _, m := range metadata {
		if string(m.Name) == "annotations" {
			return m.Value
		}
	}
	return nil
}
