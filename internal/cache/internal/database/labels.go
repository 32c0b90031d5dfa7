package database

import (
	"bytes"
	"iter"
	"sort"
	"strings"
	"unique"
)

// Labels are the labels of an object. They can be matched by a labels.Selector of
// apimachinery, and compared with ==. The zero value has no labels.
//
// Objects of one kind mostly have the same few keys and different values. So objects with the
// same keys share them, and the values are one string.
type Labels struct {
	// keys are sorted, each followed by a NUL, which no label contains.
	keys unique.Handle[string]
	// values are the values of the keys, in the order of the keys, each followed by a NUL.
	values string
}

// All returns the labels, sorted by key.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if l == (Labels{}) {
			return
		}
		keys, values := l.keys.Value(), l.values
		for keys != "" {
			k, restKeys, _ := strings.Cut(keys, "\x00")
			v, restValues, _ := strings.Cut(values, "\x00")
			if !yield(k, v) {
				return
			}
			keys, values = restKeys, restValues
		}
	}
}

// Lookup returns the value of the label key, and whether the label exists.
func (l Labels) Lookup(key string) (value string, exists bool) {
	for k, v := range l.All() {
		if k == key {
			return v, true
		}
		if k > key {
			break
		}
	}
	return "", false
}

// Has reports whether the label key exists.
func (l Labels) Has(key string) bool {
	_, exists := l.Lookup(key)
	return exists
}

// Get returns the value of the label key, or the empty string if the label does not exist.
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// labelWriter collects labels, and writes them as Labels keeps them. It can be used again.
type labelWriter struct {
	pairs        [][2][]byte
	keys, values []byte
}

// add adds one label. It leaves out a label with a NUL, which no server accepts.
func (w *labelWriter) add(key, value []byte) {
	if bytes.IndexByte(key, 0) < 0 && bytes.IndexByte(value, 0) < 0 {
		w.pairs = append(w.pairs, [2][]byte{key, value})
	}
}

// Len returns the number of labels. Len, Less and Swap are for package sort: unlike
// slices.SortStableFunc, sort.Stable is not compiled once more for the pairs.
func (w *labelWriter) Len() int { return len(w.pairs) }

// Less reports whether the name of label i sorts before that of label j.
func (w *labelWriter) Less(i, j int) bool { return bytes.Compare(w.pairs[i][0], w.pairs[j][0]) < 0 }

// Swap exchanges two labels.
func (w *labelWriter) Swap(i, j int) { w.pairs[i], w.pairs[j] = w.pairs[j], w.pairs[i] }

// finish returns the labels that were added, and removes them. The slices are valid until the
// next use.
func (w *labelWriter) finish() (keys, values []byte) {
	// A server sends them sorted, so that this is one look at each.
	sort.Stable(w)
	w.keys, w.values = w.keys[:0], w.values[:0]
	for i, p := range w.pairs {
		if i+1 < len(w.pairs) && bytes.Equal(w.pairs[i+1][0], p[0]) {
			continue // of equal keys the last one counts, as in encoding/json
		}
		w.keys = append(append(w.keys, p[0]...), 0)
		w.values = append(append(w.values, p[1]...), 0)
	}
	clear(w.pairs)
	w.pairs = w.pairs[:0]
	return w.keys, w.values
}
