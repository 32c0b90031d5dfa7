package cache

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// Few objects are kept as they are: a dictionary, and what it needs, would take more.
func TestFewAreNotCompressed(t *testing.T) {
	t.Parallel()
	s := filled(webApps, samples.webApp, 30)
	if st := s.stats(); st.Dictionaries != 0 || st.Bytes != st.JSON || st.Objects != 30 {
		t.Errorf("%+v", st)
	}
}

// A dictionary is made once there is enough to make it of; then all are written with it.
func TestDictionaryIsMade(t *testing.T) {
	t.Parallel()
	s := filled(webApps, samples.webApp, 65)
	st := s.stats()
	if st.Dictionaries != 1 || st.Dictionary == 0 || st.Dictionary > codec.MaxDictionarySize || st.Bytes > st.JSON/3 {
		t.Errorf("%+v", st)
	}
	for slot, e := range s.store.slots {
		if e.codec != s.writer.compressor.Current() {
			t.Errorf("slot %d is not written with it", slot)
		}
	}
	// Fewer will do when they are large, and nothing else is to be expected.
	if st := filled(pods, samples.pod, 20).stats(); st.Dictionaries != 1 {
		t.Errorf("of few Pods: %+v", st)
	}
}

// When the objects change their looks, so does the dictionary, step by step; the old one
// goes when nothing is written with it any more.
func TestDictionaryIsReplaced(t *testing.T) {
	t.Parallel()
	s := filled(pods, samples.webApp, 700)
	before := s.writer.compressor.Current()
	random := newSamples(9)
	objects := make(map[kube.Key]string)
	for o := range s.store.All(Filter{}) {
		objects[o.Key()] = bytesOf(t, o)
	}
	for i := range 900 {
		o := random.pod(i)
		objects[insert(s, o).Key()] = o
		if st := s.stats(); st.Dictionary > 4*codec.MaxDictionarySize {
			t.Fatalf("too many dictionaries: %+v", st)
		}
	}
	for range 10 {
		s.apply(watch.Change{Type: watch.ChangeBookmark})
	}
	st := s.stats()
	if s.writer.compressor.Current() == before || st.Dictionary > codec.MaxDictionarySize || len(s.store.codecs) != 1 {
		t.Errorf("the first dictionary is in use: %+v", st)
	}
	if st.Dictionaries > 6 {
		t.Errorf("%d dictionaries", st.Dictionaries)
	}
	if mean := st.Bytes / int64(st.Objects); mean > 600 {
		t.Errorf("%d bytes an object", mean)
	}
	for o := range s.store.All(Filter{}) {
		if bytesOf(t, o) != objects[o.Key()] {
			t.Fatalf("%s has changed", o.Key())
		}
	}
}

// A dictionary that fits as well as can be stays.
func TestDictionaryStays(t *testing.T) {
	t.Parallel()
	s := filled(webApps, samples.webApp, 1200)
	made := s.stats().Dictionaries
	random := newSamples(4)
	for i := range 800 {
		insert(s, random.webApp(i))
	}
	if st := s.stats(); st.Dictionaries != made {
		t.Errorf("%d dictionaries became %d", made, st.Dictionaries)
	}
}

// What cannot be made smaller is kept as it was sent.
func TestIncompressible(t *testing.T) {
	t.Parallel()
	s := filled(webApps, samples.webApp, 100)
	o := fmt.Sprintf(`{"metadata":{"name":"x","resourceVersion":"7"},"data":%q}`, noise(3000))
	r := insert(s, o)
	if e := s.store.find(r.Key()); e.codec != nil {
		t.Errorf("%d bytes of %d", len(e.content()), e.size)
	}
	if got, _ := s.store.Get(r.Key()); bytesOf(t, got) != o {
		t.Error("it has changed")
	}
}

// noise returns n bytes with nearly seven bits of entropy each.
func noise(n int) string {
	random := newSamples(1)
	b := make([]rune, n)
	for i := range b {
		b[i] = rune('#' + random.IntN(90))
	}
	return string(b)
}
