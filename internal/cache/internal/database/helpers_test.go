package database

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
)

// testStore is a Database with its Writer.
type testStore struct {
	*Database
	writer *Writer
	// errors are those that the two reported.
	errors []error
}

func newTestStore(o Options) *testStore {
	s := &testStore{}
	o.Report = func(err error) { s.errors = append(s.errors, err) }
	o.ReportWrite = o.Report
	s.Database, s.writer = New(o)
	return s
}

// filled returns a database with count objects, compressed if compression is worth the work.
func filled(object func(samples.Random, int) string, count int) *testStore {
	s, random := newTestStore(Options{}), samples.New(1)
	for i := range count {
		s.insert(object(random, i))
	}
	s.writer.Maintain(true)
	return s
}

// put puts an item into the database.
func (s *testStore) put(i Item) *PackedObject {
	_, p, _ := s.writer.Put(i)
	s.writer.Maintain(false)
	return p
}

// insert puts an object into the database, which is JSON.
func (s *testStore) insert(object string) *PackedObject {
	p, err := PackMetadata([]byte(object))
	if err != nil {
		panic(err)
	}
	return s.put(NewItem(p.Key(), p.UID(), p.ResourceVersion(), []byte(object)))
}

// contents returns the objects that match, by their keys.
func (s *testStore) contents(t *testing.T, f Filter) map[kube.Key]string {
	t.Helper()
	all := make(map[kube.Key]string)
	for p := range s.Select(f).All {
		if _, twice := all[p.Key()]; twice {
			t.Errorf("%s comes twice", p.Key())
		}
		all[p.Key()] = jsonOf(t, p)
	}
	return all
}

func jsonOf(t *testing.T, p *PackedObject) string {
	t.Helper()
	object, err := p.AppendJSON(nil)
	if err != nil {
		t.Fatalf("the JSON of %s: %v", p.Key(), err)
	}
	return string(object)
}

// mustRead returns a packed object of an object, which is JSON.
func mustRead(t *testing.T, object string) *PackedObject {
	t.Helper()
	p, err := PackMetadata([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustParse(selector string) labels.Selector {
	s, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return s
}
