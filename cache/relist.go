package cache

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/cache/internal/store"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// beginList records that the stream lists anew. The list shows the effects of every write that
// the overlay has now.
func (s *stream) beginList() {
	s.listBegan = s.cache.overlay.Begin()
	s.listPast = s.cache.past.Load()
	s.listContradictions = s.contradictions()
	s.beginExpectations()
	s.listing = true
	s.recorder.RecordListStarted()
}

// endList records that a list is complete, and publishes the deletions that neither a watch nor
// the list could show.
func (s *stream) endList(version string) {
	// since is a version that the server had before it was restored.
	since := version
	restored := s.store.Synced() && (ident.IsNewer(s.store.Version(), version) || s.lostSince != "")
	if lost, has := s.hasLostExpected(version); has && !restored {
		restored = true
		s.recordLost(lost)
	}
	if s.lostSince != "" && ident.IsNewer(version, s.lostSince) {
		since = s.lostSince
	}
	s.lostSince = ""
	vanished := s.takeVanished(version, restored)
	s.lists.Add(1)
	s.listing = false
	first := s.completeList(version)
	s.recorder.RecordListed(version)
	s.restored = restored || !s.cache.isOfPresent(s)
	s.settleContradictions(s.listContradictions)
	if restored {
		s.cache.recordRestoration(s, since)
	} else {
		// Another stream may have found a restoration while this list ran, and that this store
		// is not affected. If the list is of the lost past all the same, this stream finds that
		// out itself: its watch stays silent.
		s.past.Store(max(s.past.Load(), s.listPast))
	}
	if first {
		s.publish(Change{Type: Synced})
	}
	for _, e := range vanished {
		s.publish(Change{Type: Deleted, Before: recordOf(e), before: e})
	}
}

// takeVanished returns the objects that this program has read or written, that the stream has not
// shown, and that its list at version does not contain: somebody deleted them in the meantime, or
// they no longer match. No watch will ever show that. Objects that never had the labels that the
// stream selects are not among them: the stream has not lost them. After a restoration takeVanished
// doubts the overlay's entries from before the list: other streams may be behind them.
func (s *stream) takeVanished(version string, restored bool) []*store.Entry {
	var vanished []*store.Entry
	for k, written := range s.cache.overlay.Entries(s.collection()) {
		before := written.IsRecordedBefore(s.listBegan)
		if restored && before {
			s.cache.overlay.DoubtUntil(k, written, version)
		}
		vanished = append(vanished, s.vanishedOf(k, written, func(value overlay.Entry) bool {
			// A value of another UID that is older than the object in the store was published when
			// the list showed the object.
			shown := s.store.objects.Get(k.In())
			return (before || ident.HasReached(version, value.Version)) &&
				(shown == nil || shown.UID() != value.UID && ident.IsNewer(value.Version, shown.ResourceVersion()))
		})...)
	}
	return vanished
}

// takeReplaced returns the objects that this program has read or written, that the stream has not
// shown, and that had the name of an object in its list before.
func (s *stream) takeReplaced(c watch.Change, before *store.Entry) []*store.Entry {
	k := overlay.KeyOf(s.ref(c))
	written, ok := s.cache.overlay.Get(k)
	if !ok {
		return nil
	}
	return s.vanishedOf(k, written, func(value overlay.Entry) bool {
		return value.UID != c.UID && ident.IsNewer(c.ResourceVersion, value.Version) && (before == nil || before.UID() != value.UID)
	})
}

// hasMissed reports whether the program has read or written a state of an object in the list that the
// stream has not shown.
func (s *stream) hasMissed(c watch.Change) bool {
	written, ok := s.cache.overlay.Get(overlay.KeyOf(s.ref(c)))
	if !ok {
		return false
	}
	shown, _ := s.store.observe(c.Key)
	return !written.IsObservedBy(shown)
}

// vanishedOf returns the values of written that have vanished, as entries of this stream, at most
// one for each UID. It leaves out the values that the stream has shown before its list.
func (s *stream) vanishedOf(k overlay.Key, written overlay.Entry, hasVanished func(overlay.Entry) bool) []*store.Entry {
	var vanished []*store.Entry
	for _, value := range written.Values() {
		if ident.HasReached(s.store.Version(), value.Version) || !hasVanished(value) {
			continue
		}
		e := s.entryOf(k, value)
		if e == nil || !s.selects(e) {
			continue
		}
		s.recorder.RecordChange(k.Namespace, "", s.listing)
		i := slices.IndexFunc(vanished, e.IsSameObject)
		switch {
		case i < 0:
			vanished = append(vanished, e)
		case ident.IsNewer(e.ResourceVersion(), vanished[i].ResourceVersion()):
			vanished[i] = e
		}
	}
	return vanished
}

// selects reports whether the labels of an entry match the label selector of the stream.
func (s *stream) selects(e *store.Entry) bool {
	selector, err := labels.Parse(s.id.LabelSelector)
	return err != nil || selector.Matches(e.Labels()) // the server refuses a selector that is not valid
}

// entryOf returns written as an entry of this stream, or nil if its content was not kept or cannot be
// read.
func (s *stream) entryOf(k overlay.Key, written overlay.Entry) *store.Entry {
	object := written.Object
	switch {
	case object == nil:
	case s.fields != nil:
		object, _ = s.fields.AppendObject(nil, object)
	case s.id.Representation == kube.MetadataOnly:
		object, _ = metadataOf(object)
	}
	if object == nil {
		return nil
	}
	e, err := s.writer.Build(store.NewItem(k.In(), written.UID, written.Version, object))
	if err != nil {
		return nil
	}
	return e
}

// recordRestoration records that s has listed the state of a server that was restored from a
// backup. What the server had at version is not lost. The stores of other streams that are newer
// than version are of the past that was lost, until they are listed. They are listed now: their own
// watches may never show that anything was lost. What the program has written since the backup is
// in doubt.
func (c *Cache) recordRestoration(s *stream, version string) {
	c.overlay.DoubtNewer(s.id.Cluster, version)
	if past := c.past.Load(); s.past.Load() == past {
		c.past.Store(past + 1)
		for _, other := range c.snapshot() {
			if other.id.Cluster == s.id.Cluster {
				other.forgetExpected()
			}
			if other.id.Cluster != s.id.Cluster || !ident.IsNewer(other.store.Version(), version) {
				other.past.Store(past + 1)
			} else if other != s {
				other.relister.Relist()
			}
		}
	}
	s.past.Store(c.past.Load())
}

// publishRestored publishes that a restoration was found in a cluster, or that a store has
// recovered from it. The caller must hold no lock.
func (c *Cache) publishRestored(cluster string) {
	for _, s := range c.snapshot() {
		if s.id.Cluster != cluster {
			continue
		}
		s.deliver.Lock()
		if s.store.Synced() {
			s.publish(Change{Type: Restored})
		}
		s.deliver.Unlock()
	}
}

// isOfPresent reports whether the store of s is not known to be of a past that a restoration has
// undone.
func (c *Cache) isOfPresent(s *stream) bool {
	return s.past.Load() >= c.past.Load() && !s.isContradicted()
}
