package database

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// compareDecoded compares what is read of an object with what a decoder makes of it.
func compareDecoded(t *testing.T, object []byte) {
	t.Helper()
	var want narrow
	if err := kube.Unmarshal(object, &want); err != nil {
		t.Fatal(err)
	}
	p, err := PackMetadata(object)
	if err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	type fields struct {
		Key             kube.Key
		UID             types.UID
		ResourceVersion string
		Generation      int64
		Deleting        bool
		Labels          map[string]string
		Owners          []kube.Owner
		Size            int
	}
	got := fields{
		p.Key(), p.UID(), p.ResourceVersion(), p.Generation, p.IsDeleting, maps.Collect(p.Labels().All()), p.Owners(), p.Size(),
	}
	m := want.Metadata
	expected := fields{
		Key: kube.Key{Namespace: m.Namespace, Name: m.Name}, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, Deleting: m.DeletionTimestamp != nil, Labels: m.Labels, Size: len(object),
	}
	if m.Labels == nil {
		expected.Labels = map[string]string{}
	}
	for _, o := range m.OwnerReferences {
		group, _, grouped := strings.Cut(o.APIVersion, "/")
		if !grouped {
			group = ""
		}
		expected.Owners = append(expected.Owners, kube.Owner{Group: group, Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: o.Controller})
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("the metadata differ from what a decoder reads:\n%s", diff)
	}
	if (p.AnnotationsHash != 0) != (len(m.Annotations) > 0) || (p.FinalizersHash != 0) != (len(m.Finalizers) > 0) {
		t.Errorf("hashes %d and %d for %v and %v", p.AnnotationsHash, p.FinalizersHash, m.Annotations, m.Finalizers)
	}
}

// fixtures returns one object of every built-in kind, with every field set.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatalf("find the fixtures: %v", err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "testdata", "HEAD", "*.json"))
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d fixtures, %v", len(paths), err)
	}
	objects := make(map[string][]byte, len(paths))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		objects[strings.TrimSuffix(filepath.Base(path), ".json")] = data
	}
	return objects
}

func TestRecordOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, object := range fixtures(t) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(object, &members); err != nil {
			t.Fatal(err)
		}
		if members["metadata"] == nil {
			continue // it is no object
		}
		t.Run(name, func(t *testing.T) {
			compareDecoded(t, object)
			var compact bytes.Buffer
			if err := json.Compact(&compact, object); err != nil {
				t.Fatal(err)
			}
			compareDecoded(t, compact.Bytes())
		})
	}
}

// Every fixture comes out of a database as it went in, whatever it was written with.
func TestContentOfEveryKind(t *testing.T) {
	t.Parallel()
	s := newTestStore(Options{})
	want := make(map[kube.Key]string)
	for round := range 3 {
		for name, object := range fixtures(t) {
			k := kube.Key{Namespace: "ns", Name: name}
			want[k] = string(object)
			s.put(NewItem(k, types.UID(name), string(rune('1'+round)), object))
		}
	}
	s.writer.Maintain(true)
	if st := s.Stats(); st.Dictionaries == 0 || st.Bytes > st.JSON/2 {
		t.Errorf("nothing was compressed: %+v", st)
	}
	if diff := cmp.Diff(want, s.contents(t, Filter{})); diff != "" {
		t.Error(diff)
	}
}

func TestRecordOfSamples(t *testing.T) {
	t.Parallel()
	random := samples.New(3)
	for i := range 50 {
		compareDecoded(t, []byte(random.WebApp(i)))
		compareDecoded(t, []byte(random.Pod(i)))
	}
}

func TestRecordOfOddities(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"white space":      " {\n \"metadata\" : {\t\"name\" : \"a\" , \"generation\" : 3 , \"labels\" : { \"k\" : \"v\" , \"a\" : \"b\" } } } ",
		"nulls":            `{"metadata":{"name":"a","labels":null,"annotations":null,"ownerReferences":null,"finalizers":null,"deletionTimestamp":null,"generation":null}}`,
		"empty":            `{"metadata":{"name":"a","labels":{},"annotations":{},"ownerReferences":[],"finalizers":[]}}`,
		"escapes":          `{"kind":"a\\","x":"\"metadata\":{","metadata":{"name":"a\u0062\\\"","labels":{"k":"\u0076"},"annotations":{"x":"}\\"}}}`,
		"metadata at last": `{"spec":{"metadata":{"name":"wrong"},"x":[1,{"y":"]"},true,null,-1.5e3]},"metadata":{"name":"right"}}`,
		"owners":           `{"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"},{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"2","controller":true,"blockOwnerDeletion":true}]}}`,
		"label twice":      `{"metadata":{"name":"a","labels":{"k":"1","k":"2"}}}`,
		"empty label":      `{"metadata":{"name":"a","labels":{"k":""}}}`,
		"deleting":         `{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x"]}}`,
	} {
		t.Run(name, func(t *testing.T) { compareDecoded(t, []byte(object)) })
	}
}

// Metadata that do not fit are left out, and the rest is there.
func TestRecordOfMisfits(t *testing.T) {
	t.Parallel()
	var m metadata
	err := m.read([]byte(`{"metadata":{"labels":{"bad":7,"good":"yes"},"generation":"x","name":"a","uid":"u"}}`))
	if err == nil || string(m.name) != "a" || string(m.uid) != "u" || string(m.labelKeys) != "good\x00" {
		t.Errorf("%v, name %q, uid %q, labels %q", err, m.name, m.uid, m.labelKeys)
	}
	for _, broken := range []string{"", "{", `{"metadata"`, `{"metadata":{`, `{"metadata":{"name":"a`, `[]`, `{}`, `{"a":"\`, `7`, `{"metadata":{"ownerReferences":[`} {
		if err := m.read([]byte(broken)); err == nil {
			t.Errorf("no error from %q", broken)
		}
	}
}

// The members of the metadata that a stream has read lead to the same packed object as the object itself.
func TestRecordOfMembers(t *testing.T) {
	t.Parallel()
	random := samples.New(1)
	for _, object := range []string{
		random.WebApp(1), random.Pod(1),
		`{"metadata":{"managedFields":[{"manager":"x"}],"name":"a","labels":{"b":"1","a":"2"},"annotations":{"x":"y"},"finalizers":["f"],"deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
		`{"metadata":{"name":"a","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"2","controller":true}]}}`,
		`{"metadata":{"labels":{"bad":7,"good":"yes"},"generation":"x","name":"a","uid":"u"}}`,
		`{"metadata":{"name":"a","labels":{"a":"1"},"labels":{"b":"2"},"ownerReferences":[{"uid":"1"}],"ownerReferences":[{"uid":"2"}],"generation":1,"generation":2}}`,
		`{"metadata":{"n\u0061me":"a","labels":null,"annotations":{},"finalizers":[]}}`,
		`{"metadata":{}}`,
	} {
		var members []jsonscan.Member
		s := jsonscan.New([]byte(object))
		if ok, err := s.Find("metadata"); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := s.Members(func(name []byte) error {
			value, err := s.Raw()
			if string(name) != "managedFields" {
				members = append(members, jsonscan.Member{Name: name, Value: value})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		read := func(i Item) string {
			_, w := New(Options{})
			p, err := w.Build(i)
			owners := p.Owners()
			p.owners = nil
			return fmt.Sprintf("%+v %v %v", *p, owners, err)
		}
		i := NewItem(kube.Key{Name: "a"}, "u", "7", []byte(object))
		if diff := cmp.Diff(read(i), read(i.WithMetadata(members))); diff != "" {
			t.Errorf("%s: %s", object, diff)
		}
	}
}

// FuzzRecord finds no input that makes reading a record panic or hang, nor a well-formed input
// with a result other than the result of a decoder.
func FuzzRecord(f *testing.F) {
	random := samples.New(1)
	f.Add([]byte(random.WebApp(1)))
	f.Add([]byte(random.Pod(1)))
	f.Add([]byte(`{"metadata":{"name":"a\u0062","labels":{"k":"\\"},"ownerReferences":[{"uid":"1"}]}}`))
	f.Add([]byte("{\"metadata\":{\"name\":\"a\x8d\"}}")) // invalid UTF-8 was not replaced, as a decoder replaces it
	f.Add([]byte(`{"metadata":{"name":"a\ud800"}}`))     // a surrogate without its other half was an error
	f.Fuzz(func(t *testing.T, object []byte) {
		got, err := PackMetadata(object)
		var want narrow
		if !json.Valid(object) || kube.Unmarshal(object, &want) != nil || bytes.Count(object, []byte(`"metadata"`)) != 1 {
			return
		}
		if err != nil {
			if errors.Is(err, jsonscan.ErrNotJSON) && bytes.HasPrefix(bytes.TrimSpace(object), []byte("{")) {
				t.Errorf("well-formed, but: %v", err)
			}
			return
		}
		if hasDuplicates(object) {
			return
		}
		if got.Name() != want.Metadata.Name || got.UID() != want.Metadata.UID {
			t.Errorf("got %q %q, want %q %q", got.Name(), got.UID(), want.Metadata.Name, want.Metadata.UID)
		}
	})
}

// hasDuplicates reports whether a name may come more than once. The test does not compare which
// of the two counts.
func hasDuplicates(object []byte) bool {
	return bytes.Count(object, []byte(`"name"`)) > 1 || bytes.Count(object, []byte(`"uid"`)) > 1 || bytes.Contains(object, []byte(`\u`))
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", samples.New(1).UID(), strings.ToUpper(samples.New(1).UID()), strings.Repeat("x", 36), "00000000-0000-0000-0000-000000000000"} {
		for _, version := range []string{"", "0", "1", "01", "+1", "-1", "18446744073709551615", "18446744073709551616", "abc"} {
			s := newTestStore(Options{})
			k := kube.Key{Name: "a"}
			s.put(NewItem(k, types.UID(text), version, []byte(`{"metadata":{"name":"a"}}`)))
			if p := s.Get(k); string(p.UID()) != text || p.ResourceVersion() != version {
				t.Errorf("%q at %q became %q at %q", text, version, p.UID(), p.ResourceVersion())
			}
		}
	}
}

// BenchmarkRecord measures the cost of reading the record of an object, beside that of decoding
// the object into a struct with the same fields.
func BenchmarkRecord(b *testing.B) {
	random := samples.New(1)
	for name, object := range map[string][]byte{"WebApp": []byte(random.WebApp(1)), "Pod": []byte(random.Pod(1))} {
		b.Run(name+"/scan", func(b *testing.B) {
			b.ReportAllocs()
			var m metadata
			for b.Loop() {
				if err := m.read(object); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var o narrow
				if err := kube.Unmarshal(object, &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// narrow has the fields of a record, for a decoder.
type narrow struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		UID               types.UID         `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		Generation        int64             `json:"generation"`
		DeletionTimestamp *string           `json:"deletionTimestamp"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		Finalizers        []string          `json:"finalizers"`
		OwnerReferences   []struct {
			APIVersion string    `json:"apiVersion"`
			Kind       string    `json:"kind"`
			Name       string    `json:"name"`
			UID        types.UID `json:"uid"`
			Controller bool      `json:"controller"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}
