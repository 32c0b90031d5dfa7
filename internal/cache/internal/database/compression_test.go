package database

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/cache/internal/codec"
	"github.com/yare-go/yare/internal/cache/internal/samples"
)

// Few objects are kept as they are: a dictionary, and what it needs, would take more.
func TestFewAreNotCompressed(t *testing.T) {
	t.Parallel()
	s := filled(samples.Random.WebApp, 30)
	if st := s.Stats(); st.Dictionaries != 0 || st.Bytes != st.JSON || st.Objects != 30 {
		t.Errorf("%+v", st)
	}
}

// A dictionary is made once there is enough to make it of; then all are written with it.
func TestDictionaryIsMade(t *testing.T) {
	t.Parallel()
	s := filled(samples.Random.WebApp, 65)
	st := s.Stats()
	if st.Dictionaries != 1 || st.Dictionary == 0 || st.Dictionary > codec.MaxDictionarySize || st.Bytes > st.JSON/3 {
		t.Errorf("%+v", st)
	}
	for slot, e := range s.objects.slots {
		if e.codec != s.writer.compression.compressor.Current() {
			t.Errorf("slot %d is not written with it", slot)
		}
	}
	// Fewer will do when they are large, and nothing else is to be expected.
	if st := filled(samples.Random.Pod, 20).Stats(); st.Dictionaries != 1 {
		t.Errorf("of few Pods: %+v", st)
	}
}

// When the objects change their looks, so does the dictionary, step by step; the old one
// goes when nothing is written with it any more.
func TestDictionaryIsReplaced(t *testing.T) {
	t.Parallel()
	s := filled(samples.Random.WebApp, 700)
	before := s.writer.compression.compressor.Current()
	random := samples.New(9)
	objects := s.contents(t, Filter{})
	for i := range 900 {
		o := random.Pod(i)
		objects[s.insert(o).Key()] = o
		if st := s.Stats(); st.Dictionary > 4*codec.MaxDictionarySize {
			t.Fatalf("too many dictionaries: %+v", st)
		}
	}
	for range 10 {
		s.writer.Maintain(true)
	}
	st := s.Stats()
	if s.writer.compression.compressor.Current() == before || st.Dictionary > codec.MaxDictionarySize || len(s.objects.codecs) != 1 {
		t.Errorf("the first dictionary is in use: %+v", st)
	}
	if st.Dictionaries > 6 {
		t.Errorf("%d dictionaries", st.Dictionaries)
	}
	if mean := st.Bytes / int64(st.Objects); mean > 600 {
		t.Errorf("%d bytes an object", mean)
	}
	if diff := cmp.Diff(objects, s.contents(t, Filter{})); diff != "" {
		t.Fatal(diff)
	}
}

// A release changes each object once. So an object is not written anew with a new dictionary shortly before its own change. About
// as many objects as there are were written anew once. Those that do not change are written anew in the end.
func TestObjectsThatChangeSoonAreNotWrittenAnew(t *testing.T) {
	t.Parallel()
	const count = 2000
	s := filled(samples.Random.WebApp, count)
	s.writer.Complete("1")
	dictionaries, rewrites, release := s.Stats().Dictionaries, 0, noise(600)
	var packed []*PackedObject
	for key, object := range s.contents(t, Filter{}) {
		packed = append(packed[:0], s.objects.slots...)
		s.insert(strings.Replace(object, `"metadata":{`, fmt.Sprintf(`"release":%q,"metadata":{`, release), 1))
		slot, _ := s.objects.slotOf(key)
		for each, e := range s.objects.slots {
			if e != packed[each] && uint32(each) != slot {
				rewrites++
			}
		}
	}
	if s.Stats().Dictionaries == dictionaries {
		t.Fatal("the changes have led to no dictionary")
	}
	if rewrites > count/2 {
		t.Errorf("%d objects were written anew", rewrites)
	}
	for range 4 {
		s.writer.Maintain(true)
	}
	if len(s.objects.codecs) != 1 {
		t.Errorf("%d dictionaries are in use at rest", len(s.objects.codecs))
	}
}

// A dictionary that fits as well as can be stays.
func TestDictionaryStays(t *testing.T) {
	t.Parallel()
	s := filled(samples.Random.WebApp, 1200)
	made := s.Stats().Dictionaries
	random := samples.New(4)
	for i := range 800 {
		s.insert(random.WebApp(i))
	}
	if st := s.Stats(); st.Dictionaries != made {
		t.Errorf("%d dictionaries became %d", made, st.Dictionaries)
	}
}

// What cannot be made smaller is kept as it was sent.
func TestIncompressible(t *testing.T) {
	t.Parallel()
	s := filled(samples.Random.WebApp, 100)
	o := fmt.Sprintf(`{"metadata":{"name":"x","resourceVersion":"7"},"data":%q}`, noise(3000))
	e := s.insert(o)
	if e.codec != nil {
		t.Errorf("%d bytes of %d", len(e.content()), e.size)
	}
	if jsonOf(t, s.Get(e.Key())) != o {
		t.Error("it has changed")
	}
}

// noise returns n bytes with nearly seven bits of entropy each.
func noise(n int) string {
	random := samples.New(1)
	b := make([]rune, n)
	for i := range b {
		b[i] = rune('#' + random.IntN(90))
	}
	return string(b)
}

// The contents of Secrets are neither compressed nor kept for a dictionary.
func TestPlainContentsAreInNoDictionary(t *testing.T) {
	t.Parallel()
	s := newTestStore(Options{Plain: true})
	random := samples.New(1)
	for i := range 200 {
		s.insert(random.WebApp(i))
	}
	s.writer.Maintain(true)
	if st := s.Stats(); st.Dictionaries != 0 || st.Bytes != st.JSON || st.Objects != 200 {
		t.Errorf("%+v", st)
	}
	for _, e := range s.writer.compression.recent {
		if e != nil {
			t.Fatal("a content is kept for a dictionary")
		}
	}
}

// Regression: the last 32 objects were kept as samples for the next dictionary, whatever their size, and after they were gone. Two
// kinds with objects of 0.8 MB kept 51 MB that no number showed, and a program of a tenant with such objects was ended for its memory.
func TestSamplesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	s, random := newTestStore(Options{}), samples.New(1)
	for i := range 100 {
		o := strings.Replace(random.WebApp(i), `"metadata":{`, `"large":"`+random.Letters(200<<10)+`","metadata":{`, 1)
		if p := s.insert(o); i%2 == 0 {
			s.writer.Remove(p.Key())
		}
	}
	kept := 0
	for _, e := range s.writer.compression.recent {
		kept += len(e.data)
	}
	if kept == 0 || kept != s.writer.compression.recentSize || kept > maxRecentSize {
		t.Errorf("%d bytes are kept for samples, and counted as %d", kept, s.writer.compression.recentSize)
	}
	size := 0
	for _, each := range s.writer.compression.samples(s.objects) {
		size += len(each)
	}
	if size == 0 || size > maxSamplesSize {
		t.Errorf("the samples have %d bytes", size)
	}
}
