package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

func TestCodingRoundTrip(t *testing.T) {
	t.Parallel()
	random := newSamples(1)
	c := newCoding([]byte(random.webApp(1) + random.pod(1)))
	for name, content := range map[string]string{
		"alike": random.webApp(2), "other": random.pod(7), "one byte": "x", "random": random.letters(5000),
		"large": random.letters(3 << 20), "repetitive": strings.Repeat(random.pod(3), 600), "zeros": strings.Repeat("\x00", 100_000),
		"just over a block": random.letters(128<<10 + 1), "just over 32 KiB": strings.Repeat(random.letters(1000), 33),
	} {
		for range 2 { // the second one with what the first has left in the encoder
			data, err := c.encode([]byte("before"), []byte(content))
			if err != nil || !strings.HasPrefix(string(data), "before") {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := c.decode([]byte("x"), string(data[len("before"):]), len(content))
			if err != nil || string(got) != "x"+content {
				t.Errorf("%s: %d bytes became %d, %v", name, len(content), len(got), err)
			}
		}
	}
	if _, err := c.decode(nil, "broken", 10); err == nil {
		t.Error("what is broken was decoded")
	}
}

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
	if st.Dictionaries != 1 || st.Dictionary == 0 || st.Dictionary > dictionarySize || st.Bytes > st.JSON/3 {
		t.Errorf("%+v", st)
	}
	for slot, e := range s.store.slots {
		if e.coding != s.store.compressor.current {
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
	before := s.store.compressor.current
	random := newSamples(9)
	objects := make(map[kube.Key]string)
	for o := range s.store.All(Filter{}) {
		objects[o.Key()] = bytesOf(t, o)
	}
	for i := range 900 {
		o := random.pod(i)
		objects[insert(s, o).Key()] = o
		if st := s.stats(); st.Dictionary > 4*dictionarySize {
			t.Fatalf("too many dictionaries: %+v", st)
		}
	}
	for range 10 {
		s.take(watch.Change{Type: watch.ChangeBookmark})
	}
	st := s.stats()
	if s.store.compressor.current == before || st.Dictionary > dictionarySize || len(s.store.codings) != 1 {
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
	if e := s.store.find(r.Key()); e.coding != nil {
		t.Errorf("%d bytes of %d", len(e.content()), e.size)
	}
	if got, _ := s.store.Get(r.Key()); bytesOf(t, got) != o {
		t.Error("it has changed")
	}
}

// noise are n bytes with seven bits of entropy each, or nearly.
func noise(n int) string {
	random := newSamples(1)
	b := make([]rune, n)
	for i := range b {
		b[i] = rune('#' + random.IntN(90))
	}
	return string(b)
}
