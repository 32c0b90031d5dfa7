package store

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// completeStore returns a store whose first list of 100 objects is complete, with the objects. All are compressed.
func completeStore(t *testing.T) (*testStore, map[kube.Key]string) {
	t.Helper()
	s := filled(samples.Random.WebApp, 100)
	s.writer.Complete("1000")
	return s, s.contents(t, Filter{})
}

// insertAlone inserts an object that comes alone.
func (s *testStore) insertAlone(object string) *Entry {
	time.Sleep(minPostponedGap)
	return s.insert(object)
}

// plainCount returns how many contents are kept as they were sent.
func (s *testStore) plainCount() (n int) {
	for _, e := range s.objects.slots {
		if e != nil && e.codec == nil {
			n++
		}
	}
	return n
}

// New versions are compressed together, and read as they were sent before and after it.
func TestNewVersionsAreCompressedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, objects := completeStore(t)
		random := samples.New(5)
		for i := range 3*maxPostponed + 1 {
			o := random.WebApp(i)
			objects[s.insertAlone(o).Key()] = o
			if got, want := s.plainCount(), (i+1)%maxPostponed; got != want {
				t.Errorf("%d contents are not compressed after %d changes, want %d", got, i+1, want)
			}
			if diff := cmp.Diff(objects, s.contents(t, Filter{})); diff != "" {
				t.Fatal(diff)
			}
		}
		s.writer.Maintain(true)
		if s.plainCount() > 0 {
			t.Error("a store at rest has contents that are not compressed")
		}
		if diff := cmp.Diff(objects, s.contents(t, Filter{})); diff != "" {
			t.Fatal(diff)
		}
		if len(s.errors) > 0 {
			t.Error(s.errors)
		}
	})
}

// A version that comes soon after another one is compressed at once.
func TestVersionsOfABurstAreCompressedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := completeStore(t)
		random := samples.New(5)
		s.insertAlone(random.WebApp(0))
		for i := 1; i < maxPostponed-1; i++ {
			s.insert(random.WebApp(i))
		}
		if n := s.plainCount(); n != 1 {
			t.Errorf("%d contents are not compressed, want that of the first change", n)
		}
	})
}

// Large contents wait only until they are too many bytes together, and a very large one does not wait.
func TestLargeContentsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := completeStore(t)
		object := func(name string, size int) string {
			return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"2000","uid":"u"},"data":"%0*d"}`, name, size, 7)
		}
		if s.insertAlone(object("huge", maxPostponedSize)); s.plainCount() > 0 {
			t.Error("a very large content waits")
		}
		for i := range maxPostponed - 1 {
			s.insertAlone(object(fmt.Sprint("large", i), maxPostponedSize-200))
			if waiting := s.plainCount() * maxPostponedSize; waiting > maxPostponedBytes {
				t.Errorf("%d bytes wait", waiting)
			}
		}
	})
}

// A version that could not be decoded came while the version before waited to be compressed. The object stays
// undecodable: it must not be read in its outdated version.
func TestUndecodableObjectIsCompressed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := completeStore(t)
		random := samples.New(5)
		first := s.insertAlone(random.WebApp(0))
		mark := &wire.DecodeError{Ref: wire.Ref{Namespace: first.Key().Namespace, Name: first.Key().Name}, Err: errors.New("bad")}
		s.writer.MarkUndecodable(mark)
		for i := 1; i < maxPostponed; i++ {
			s.insertAlone(random.WebApp(i))
		}
		e := s.Get(first.Key())
		if _, err := e.AppendJSON(nil); !errors.Is(err, mark) {
			t.Errorf("the error is %v", err)
		}
		if e.codec == nil {
			t.Error("the content is not compressed")
		}
	})
}

// An object was deleted while its content waited to be compressed, and another object took its slot.
func TestDeletedObjectIsNotCompressed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, objects := completeStore(t)
		random := samples.New(5)
		var keys []kube.Key
		for i := range maxPostponed - 1 {
			keys = append(keys, s.insertAlone(random.WebApp(i)).Key())
		}
		for i, k := range keys {
			if s.writer.Remove(k); i%2 == 0 {
				delete(objects, k)
				continue
			}
			o := random.WebApp(1000 + i)
			delete(objects, k)
			objects[s.insertAlone(o).Key()] = o
		}
		s.writer.Maintain(true)
		if diff := cmp.Diff(objects, s.contents(t, Filter{})); diff != "" {
			t.Fatal(diff)
		}
		if st := s.Stats(); s.plainCount() > 0 || st.Objects != len(objects) {
			t.Errorf("%d contents are not compressed, %+v", s.plainCount(), st)
		}
	})
}

// Contents that are not compressed at all do not wait: they are in no dictionary either.
func TestPlainStorePostponesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestStore(Options{Plain: true})
		random := samples.New(1)
		s.writer.Complete("1")
		for i := range 200 {
			s.insertAlone(random.WebApp(i))
		}
		if len(s.writer.postponed.slots) > 0 {
			t.Error("contents wait")
		}
	})
}
