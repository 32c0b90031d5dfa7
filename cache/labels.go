package cache

import (
	"iter"
	"strings"

	"github.com/yare-go/yare/cache/internal/store"
)

// Labels are the labels of an object. They can be matched by a labels.Selector of
// apimachinery, and compared with ==. The zero value has no labels. Objects of one kind mostly have
// the same few keys, and share them.
type Labels struct{ labels store.Labels }

// LabelsOf returns the Labels in a map.
func LabelsOf(m map[string]string) Labels { return Labels{store.NewLabels(m)} }

// All returns the labels, sorted by key.
func (l Labels) All() iter.Seq2[string, string] { return l.labels.All() }

// Lookup returns the value of the label key, and whether the label exists.
func (l Labels) Lookup(key string) (value string, exists bool) { return l.labels.Lookup(key) }

// Has reports whether the label key exists.
func (l Labels) Has(key string) bool { return l.labels.Has(key) }

// Get returns the value of the label key, or the empty string if the label does not exist.
func (l Labels) Get(key string) string { return l.labels.Get(key) }

// Len returns the number of labels.
func (l Labels) Len() int {
	n := 0
	for range l.All() {
		n++
	}
	return n
}

// Map returns the labels as a map of the caller's own.
func (l Labels) Map() map[string]string {
	m := make(map[string]string, l.Len())
	for k, v := range l.All() {
		m[k] = v
	}
	return m
}

// String returns the labels as kubectl writes them, such as app=web,tier=front.
func (l Labels) String() string {
	var b strings.Builder
	for k, v := range l.All() {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k + "=" + v)
	}
	return b.String()
}
