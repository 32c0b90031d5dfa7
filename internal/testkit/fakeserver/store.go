package fakeserver

import (
	"maps"
	"slices"

	"github.com/yare-go/yare/kube"
)

// state is the content of a backup.
type state struct {
	version int
	objects map[objectID]*object
}

func (s state) clone() state { return state{s.version, maps.Clone(s.objects)} }

// change is one entry of the history. before is nil for an addition, and after is nil for a deletion.
type change struct {
	version       int
	before, after *object
	// last is the object's former state at the version of the change, for watches that report the object
	// as DELETED. It is nil before the first of them.
	last *object
}

// lastState returns the former state of a removed or deselected object at the version of the change.
func (c *change) lastState() *object {
	if c.last == nil {
		c.last = newObject(c.before.id, c.version, clone(c.before.content))
	}
	return c.last
}

// store holds the objects of a server. The lock of the server guards it.
type store struct {
	state
	// publish is called with each change.
	publish func(change)
}

// newStore returns an empty store at version 100.
func newStore(publish func(change)) *store {
	return &store{state{100, make(map[objectID]*object)}, publish}
}

// putObject stores a new version of an object.
func (s *store) putObject(id objectID, content map[string]any) *object {
	s.version++
	o := newObject(id, s.version, content)
	s.setObject(id, o)
	return o
}

// putText stores an object as it is: text returns the object at its version.
func (s *store) putText(id objectID, text func(version int) []byte) {
	s.version++
	o := &object{id: id, version: s.version, text: text(s.version)}
	if kube.Unmarshal(o.text, &o.content) != nil {
		o.content = map[string]any{"metadata": map[string]any{}}
	}
	s.setObject(id, o)
}

func (s *store) setObject(id objectID, o *object) {
	before := s.objects[id]
	s.objects[id] = o
	s.publish(change{version: s.version, before: before, after: o})
}

// removeObject removes an object. last may be nil, or returns the last state of the object at its version.
func (s *store) removeObject(live *object, last func(version int) []byte) {
	delete(s.objects, live.id)
	s.version++
	c := change{version: s.version, before: live}
	if last != nil {
		c.last = &object{id: live.id, version: s.version, content: live.content, text: last(s.version)}
	}
	s.publish(c)
}

// sorted returns the objects ordered by kind, namespace and name.
func (s *store) sorted() []*object {
	return slices.SortedFunc(maps.Values(s.objects), func(a, b *object) int { return a.id.compare(b.id) })
}
