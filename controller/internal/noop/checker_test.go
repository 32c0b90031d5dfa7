package noop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

var webApps = wire.Resource{
	GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WebApp"}, Plural: "webapps",
}

// server is a handler that streams one object to the watches, in whatever representation the
// watches ask for, and answers every apply with the object.
type server struct {
	mu      sync.Mutex
	version int
	object  string
	err     error
	applies int
	watches []watch
}

type watch struct {
	*io.PipeWriter
	representation wire.Representation
}

// send writes an event with the object in the representation of the watch.
func (w watch) send(kind, object string) {
	if w.representation == wire.MetadataOnly {
		var whole struct {
			Metadata jsontext.Value `json:"metadata"`
		}
		if err := kube.Unmarshal([]byte(object), &whole); err != nil {
			panic(err)
		}
		object = fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":%s}`, whole.Metadata)
	}
	_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`, kind, object)
}

func (s *server) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Verb != wire.VerbWatch:
		s.applies++
		return &wire.Response{Code: http.StatusOK, Body: []byte(s.object)}, s.err
	default:
		reader, writer := io.Pipe()
		w, object := watch{writer, r.Representation}, s.object
		s.watches = append(s.watches, w)
		end := fmt.Sprintf(`{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, s.version)
		go func() {
			if object != "" {
				w.send("ADDED", object)
			}
			w.send("BOOKMARK", end)
		}()
		return &wire.Response{Code: http.StatusOK, BodyReader: reader}, nil
	}
}

// put stores the object that object makes for a new version, and sends it to all watches.
func (s *server) put(object func(version int) string) {
	s.mu.Lock()
	s.version++
	s.object = object(s.version)
	now, watches := s.object, s.watches
	s.mu.Unlock()
	for _, w := range watches {
		w.send("MODIFIED", now)
	}
}

// applier is a client that skips applies. The server of the client takes every apply.
type applier struct {
	*testing.T
	server  *server
	cache   *cache.Cache
	stream  *cache.Subscription
	checker *Checker
	client  wire.Handler
	// answer is the answer to the last apply.
	answer *wire.Response
	// triggers is what the controller reports.
	triggers bool
	// setBack are the fields that were reported as set back, with their managers.
	setBack []contested.Field
}

func (a *applier) reportSetBack(_ wire.Ref, fields []contested.Field) {
	a.setBack = append(a.setBack, fields...)
}

func onApplier(t *testing.T, test func(*applier)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &applier{T: t, server: &server{version: 100}, triggers: true}
		a.cache = cache.New(a.server)
		defer a.cache.Close()
		a.stream = a.open(wire.Stream{Resource: webApps})
		a.restart()
		test(a)
	})
}

// open opens a stream, and waits until it is synced.
func (a *applier) open(stream wire.Stream) *cache.Subscription {
	a.Helper()
	sub, err := a.cache.Open(a.Context(), stream, func(cache.Change) {})
	if err != nil {
		a.Fatal(err)
	}
	synctest.Wait()
	return sub
}

// reopen exchanges the stream for another one.
func (a *applier) reopen(stream wire.Stream) {
	a.Helper()
	a.stream.Close()
	a.stream = a.open(stream)
	a.restart()
}

// restart forgets all applies, as a new process has.
func (a *applier) restart() {
	a.checker = NewChecker(a.cache.View(a.stream), a.reportSetBack)
	a.client = a.checker.Handler(a.cache.Handler(a.server), func(wire.Resource, *cache.KnownState) bool { return a.triggers })
}

// live puts an object with further members of its metadata, and with the rest of the object.
func (a *applier) live(metadata, rest string) {
	a.Helper()
	a.server.put(func(version int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"%d"%s}%s}`, version, metadata, rest)
	})
	synctest.Wait()
}

// apply reports whether a request was made.
func (a *applier) apply(body string, options ...string) bool {
	a.Helper()
	r := &wire.Request{
		Verb: wire.VerbPatch, Resource: webApps, Namespace: "ns", Name: "a", ContentType: wire.ContentApply, Body: []byte(body),
		Query: url.Values{"fieldManager": {"us"}, "force": {"true"}},
	}
	for i := 0; i < len(options); i += 2 {
		if options[i] == "subresource" {
			r.Subresource = options[i+1]
		} else {
			r.Query.Set(options[i], options[i+1])
		}
	}
	before := a.server.applies
	answer, err := a.client.Do(a.Context(), r)
	if err != nil && a.server.err == nil {
		a.Fatal(err)
	}
	a.answer = answer
	return a.server.applies > before
}

// ours returns our managedFields entry, beside one of another manager.
func ours(version, subresource, fields string) string {
	return fmt.Sprintf(`,"managedFields":[{"manager":"them","operation":"Apply","apiVersion":"example.com/v1","fieldsV1":{"f:spec":{"f:b":{}}}},`+
		`{"manager":"us","operation":"Apply","subresource":%q,"apiVersion":"example.com/%s","fieldsV1":%s}]`, subresource, version, fields)
}

const wantA = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":1}}`

// Promise 8, whenever anything is in doubt an apply is sent.
func TestApplyIsSent(t *testing.T) {
	t.Parallel()
	fields := `{"f:spec":{"f:a":{}}}`
	for name, c := range map[string]struct {
		// between is what happens after the first apply.
		between func(*applier)
		body    string
		options []string
		want    bool
	}{
		"nothing happened":           {want: false},
		"another content":            {body: `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":2}}`, want: true},
		"without force":              {options: []string{"force", ""}, want: false}, // what is ours stays ours, says our entry
		"another manager":            {options: []string{"fieldManager", "others"}, want: true},
		"a dry run":                  {options: []string{"dryRun", "All"}, want: true},
		"another subresource":        {options: []string{"subresource", "scale"}, want: true},
		"the status":                 {options: []string{"subresource", "status"}, want: true},
		"another uid":                {body: `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a","uid":"v"},"spec":{"a":1}}`, want: true},
		"its uid":                    {body: `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a","uid":"u"},"spec":{"a":1}}`, want: false},
		"an older version demanded":  {body: `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a","resourceVersion":"5"},"spec":{"a":1}}`, want: true},
		"its changes do not trigger": {between: func(a *applier) { a.triggers = false }, want: true},
		"an object being deleted": {between: func(a *applier) {
			a.live(ours("v1", "", fields)+`,"deletionTimestamp":"2026-01-01T00:00:00Z"`, `,"spec":{"a":1}`)
		}, want: true},
		"a status came": {between: func(a *applier) { a.live(ours("v1", "", fields), `,"spec":{"a":1},"status":{"x":1}`) }, want: false},
		"their entry changed": {between: func(a *applier) {
			a.live(`,"managedFields":[{"manager":"us","operation":"Apply","subresource":"","apiVersion":"example.com/v1","fieldsV1":`+fields+`}]`, `,"spec":{"a":1}`)
		}, want: false},
		"our entry lost the field": {between: func(a *applier) { a.live(ours("v1", "", `{"f:spec":{}}`), `,"spec":{"a":1}`) }, want: true},
		"our entry is gone":        {between: func(a *applier) { a.live("", `,"spec":{"a":1}`) }, want: true},
		"the value changed":        {between: func(a *applier) { a.live(ours("v1", "", fields), `,"spec":{"a":2}`) }, want: true},
		"an owner came, and the rest is as wanted": {between: func(a *applier) {
			a.live(ours("v1", "", fields)+`,"ownerReferences":[{"kind":"X","name":"x","uid":"x"}]`, `,"spec":{"a":1}`)
		}, want: false},
		"in doubt": {between: func(a *applier) {
			a.server.err = &wire.Error{Unknown: true, Err: context.DeadlineExceeded}
			a.apply(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":7}}`)
			a.server.err = nil
		}, want: true},
		"the stream is gone": {between: func(a *applier) { a.stream.Close() }, want: true},
		"after a restart":    {between: (*applier).restart, want: false},
		"after a restart, in another version": {between: func(a *applier) {
			a.live(ours("v1beta1", "", fields), `,"spec":{"a":1}`)
			a.restart()
		}, want: true},
		"after a restart, with a field too many of ours": {between: func(a *applier) {
			a.live(ours("v1", "", `{"f:spec":{"f:a":{},"f:b":{}}}`), `,"spec":{"a":1,"b":2}`)
			a.restart()
		}, want: true},
		"after a restart, with a large integer that is another": {
			body: `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":9007199254740993}}`,
			between: func(a *applier) {
				a.live(ours("v1", "", fields), `,"spec":{"a":9007199254740992}`)
				a.restart()
			}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onApplier(t, func(a *applier) {
				a.live(ours("v1", "", fields), `,"spec":{"a":1}`)
				if !a.apply(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":0}}`) {
					t.Error("the first one was not sent")
				}
				a.apply(wantA)
				if c.between != nil {
					c.between(a)
				}
				body := c.body
				if body == "" {
					body = wantA
				}
				if got := a.apply(body, c.options...); got != c.want {
					t.Errorf("sent: %t, want %t", got, c.want)
				}
			})
		})
	}
}

// An apply of the same content that changes a field back is reported, with the manager that had changed the field. The
// first apply of a content is no setback, nor is one that finds the field right.
func TestSetBackFieldsAreReported(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		const want = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":1}}`
		right := ours("v1", "", `{"f:spec":{"f:a":{}}}`)
		theirs := `,"managedFields":[{"manager":"scaler","operation":"Update","apiVersion":"example.com/v1","fieldsV1":{"f:spec":{"f:a":{}}}}]`
		a.live(theirs, `,"spec":{"a":5}`)
		// setRight makes the server answer with what the apply makes.
		setRight := func() {
			a.server.mu.Lock()
			defer a.server.mu.Unlock()
			a.server.object = strings.Replace(strings.Replace(a.server.object, theirs, right, 1), `"a":5`, `"a":1`, 1)
		}
		setRight()
		a.apply(want)
		if len(a.setBack) > 0 {
			t.Fatalf("the first apply is reported: %+v", a.setBack)
		}
		for range 2 {
			a.live(right, `,"spec":{"a":1}`)
			a.apply(want)
			if len(a.setBack) > 0 {
				t.Fatalf("an apply that finds all right is reported: %+v", a.setBack)
			}
		}
		a.live(theirs, `,"spec":{"a":5}`)
		setRight()
		if !a.apply(want) {
			t.Fatal("the apply was not sent")
		}
		if want := []contested.Field{{Path: ".spec.a", Manager: "scaler"}}; !slices.Equal(a.setBack, want) {
			t.Errorf("the report is %+v, want %+v", a.setBack, want)
		}
	})
}

// Promise 8: what the server writes otherwise than it was wanted costs nothing while only
// the status and other managers' entries change.
func TestNormalizedValues(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		const want = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":"1000m"}}`
		entry := ours("v1", "", `{"f:spec":{"f:a":{}}}`)
		a.live(entry, `,"spec":{"a":"1","defaulted":true}`)
		a.apply(want)
		for i := range 3 {
			a.live(entry, fmt.Sprintf(`,"spec":{"a":"1","defaulted":true},"status":{"x":%d}`, i))
			if a.apply(want) {
				t.Errorf("status %d: it was sent", i)
			}
		}
		a.live(entry, `,"spec":{"a":"2","defaulted":true}`)
		if !a.apply(want) {
			t.Error("after a change it was not sent")
		}
	})
}

// Promise 8: a status is compared by itself.
func TestStatusValues(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		const want = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a","uid":"u","resourceVersion":"1"},"status":{"a":"1000m"}}`
		entry := ours("v1", "status", `{"f:status":{"f:a":{}}}`)
		a.live(entry, `,"spec":{"b":1},"status":{"a":"1"}`)
		a.apply(want, "subresource", "status")
		a.live(entry, `,"spec":{"b":2},"status":{"a":"1"}`)
		if a.apply(want, "subresource", "status") {
			t.Error("after a change of the spec it was sent")
		}
		a.live(entry, `,"spec":{"b":2},"status":{"a":"3"}`)
		if !a.apply(want, "subresource", "status") {
			t.Error("after a change of the status it was not sent")
		}
	})
}

// Promise 8: two large integers are two contents.
func TestContentOfLargeIntegers(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		a.live("", `,"spec":{"a":1}`)
		for i, n := range []string{"9007199254740992", "9007199254740993"} {
			if !a.apply(fmt.Sprintf(`{"metadata":{"name":"a"},"spec":{"a":%s}}`, n)) {
				t.Errorf("number %d was not sent", i)
			}
		}
	})
}

// Promise 8: a failed apply is not remembered.
func TestFailuresAreNotRemembered(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		a.live("", `,"spec":{"a":1}`)
		a.apply(wantA)
		a.server.err = &wire.Error{Code: 403}
		a.apply(`{"metadata":{"name":"a"},"spec":{"a":2}}`)
		a.server.err = nil
		if !a.apply(wantA) {
			t.Error("it was not sent")
		}
	})
}

// The memory of applies goes with the objects.
func TestMemoryOfApplies(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		a.live("", `,"spec":{"a":1}`)
		a.apply(wantA)
		for i := range 5000 {
			k := applyKey{object: wire.Ref{Resource: webApps, Namespace: "ns", Name: fmt.Sprint("gone", i)}}
			a.checker.recordApplied(k, applied{uid: "u"})
		}
		if n := len(a.checker.last); n > 2*firstSweep {
			t.Errorf("%d applies are remembered", n)
		}
		if a.apply(wantA) {
			t.Error("that of the object that is there was forgotten")
		}
	})
}

// Two contents never have one hash: names, values and the place of a member are delimited.
// They were not, and the second apply of each pair was skipped.
func TestContentIsUnambiguous(t *testing.T) {
	t.Parallel()
	body := func(metadata, rest string) string {
		return `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"` + metadata + `}` + rest + `}`
	}
	for name, bodies := range map[string][2]string{
		"a label, and a member of the object that is called labels": {body(`,"labels":{"x":"y"}`, ``), body(``, `,"labels":{"x":"y"}`)},
		"level1 0 and level 10":   {body(``, `,"level1":0`), body(``, `,"level":10`)},
		"a flow mapping of YAML":  {`{apiVersion: example.com/v1, spec: 1}`, `{apiVersion: example.com/v1, spec: 2}`},
		"a block mapping of YAML": {"apiVersion: example.com/v1\nspec: 1", "apiVersion: example.com/v1\nspec: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onApplier(t, func(a *applier) {
				a.live("", `,"spec":{"a":1}`)
				a.apply(bodies[0])
				if !a.apply(bodies[1]) {
					t.Error("the second apply was not sent")
				}
			})
		})
	}
}

// Promise 8, where only the metadata is cached: the apply that was answered at the live
// version is skipped, and its result is the applied object with the live metadata.
func TestMetadataOnly(t *testing.T) {
	t.Parallel()
	onApplier(t, func(a *applier) {
		a.reopen(wire.Stream{Resource: webApps, Representation: wire.MetadataOnly})
		a.live(ours("v1", "", `{"f:spec":{"f:a":{}}}`), `,"spec":{"a":1}`)
		if !a.apply(wantA) {
			t.Error("the first apply was not sent: no apply of this process has shown the content")
		}
		if a.apply(wantA) {
			t.Error("an apply that repeats the last one was sent")
		}
		var got struct {
			Kind     string
			Metadata struct{ Name, UID, ResourceVersion string }
			Spec     map[string]any
		}
		if err := json.Unmarshal(a.answer.Body, &got); err != nil {
			t.Fatalf("%s: %v", a.answer.Body, err)
		}
		if got.Kind != "WebApp" || got.Metadata.UID != "u" || got.Metadata.ResourceVersion != "101" || got.Spec["a"] != 1.0 {
			t.Errorf("the answer is %s", a.answer.Body)
		}
		if !a.apply(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":2}}`) {
			t.Error("another content was not sent")
		}
		a.apply(wantA)
		a.live(ours("v1", "", `{"f:spec":{"f:a":{}}}`), `,"spec":{"a":1},"status":{"x":1}`)
		if !a.apply(wantA) {
			t.Error("an apply was not sent although the object has changed")
		}
	})
}
