package fakeserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/internal/testkit/gadget"
	"github.com/yare-go/yare/internal/testkit/serverminor"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// talk is one conversation with a server. It records what the server answers, in words that do
// not depend on the server: versions, uids and times are replaced by what they are to one another.
type talk struct {
	t         *testing.T
	server    wire.Handler
	resource  wire.Resource
	namespace string
	lines     []string
	// names are the words for versions, uids and tokens.
	names map[string]string
	// last is the last answer that was an object or a list.
	last map[string]any
}

// send sends a request, and records the answer.
func (k *talk) send(r wire.Request) {
	k.t.Helper()
	r.Resource, r.Namespace = k.resource, k.namespace
	line := k.line(fmt.Sprint(r.Verb, " ", r.Name, " ", r.Subresource, " ", r.Query.Encode(), " ", string(r.Body)))
	response, err := k.do(k.t.Context(), &r)
	if err != nil {
		k.lines = append(k.lines, line+k.refusal(err))
		return
	}
	var answer map[string]any
	if err := json.Unmarshal(response.Body, &answer); err != nil {
		k.t.Fatalf("%s: %v", line, err)
	}
	k.last = answer
	k.lines = append(k.lines, line+fmt.Sprintln(response.Code)+k.words(clone(k.t, answer)))
}

// do sends a request, and repeats it while the server asks to wait: a real one does so for a moment
// after a kind was defined.
func (k *talk) do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	for {
		response, err := k.server.Do(ctx, r)
		e, ok := errors.AsType[*wire.Error](err)
		if !ok || e.Code != http.StatusTooManyRequests {
			return response, err
		}
		select {
		case <-time.After(max(e.RetryDelay(), 100*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// line returns the words for a request.
func (k *talk) line(request string) string {
	texts := slices.SortedFunc(maps.Keys(k.names), func(a, b string) int { return len(b) - len(a) })
	for _, text := range texts {
		request = strings.ReplaceAll(request, text, k.names[text])
	}
	return request + ":\n"
}

// refusal returns the parts of an error that matter.
func (k *talk) refusal(err error) string {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintln(e.Code, e.Answer.Status, e.Answer.Code, e.Answer.Reason, "unknown:", e.Unknown, "retry:", e.RetryAfter > 0)
	if d := e.Answer.Details; d != nil {
		text += fmt.Sprintln(" ", d.Name, d.Group, d.Kind, "retry:", d.RetryAfterSeconds > 0)
		for _, cause := range slices.Compact(d.Causes) { // some come twice
			text += fmt.Sprintln("    ", cause.Type, cause.Field)
		}
	}
	return text
}

// words returns a value without what differs from server to server.
func (k *talk) words(v any) string {
	b, err := json.MarshalIndent(k.plain(v, ""), "  ", "  ")
	if err != nil {
		k.t.Fatal(err)
	}
	return string(b)
}

func (k *talk) plain(v any, field string) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		if _, isList := v["items"]; isList {
			// Other tests write to the real server too.
			v["metadata"].(map[string]any)["resourceVersion"] = ""
		}
		// In order, so that the words do not depend on the order of a map.
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "continue" && v[name] == "" {
				continue // a list of custom resources has it, and others do not
			}
			m[name] = k.plain(v[name], name)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, each := range v {
			list[i] = k.plain(each, "")
		}
		if field == "managedFields" { // they are ordered by the second in which they were made
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return list
	case string:
		switch field {
		case "resourceVersion", "uid", "continue":
			return k.name(field, v)
		case "creationTimestamp", "deletionTimestamp", "time":
			return "a time"
		case "namespace":
			return "the namespace"
		}
	}
	return v
}

// name returns the word for a version, a uid or a token.
func (k *talk) name(field, text string) string {
	if text == "" {
		return ""
	}
	if k.names[text] == "" {
		k.names[text] = fmt.Sprint(field, " ", len(k.names)+1)
	}
	return k.names[text]
}

// lastMetadata returns a field of the last answer's metadata.
func (k *talk) lastMetadata(field string) string {
	metadata, _ := k.last["metadata"].(map[string]any)
	text, _ := metadata[field].(string)
	return text
}

// watch opens a watch, calls act, and records n events.
func (k *talk) watch(query url.Values, n int, act func()) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	r := &wire.Request{Verb: wire.VerbWatch, Resource: k.resource, Namespace: k.namespace, Query: query}
	line := k.line("watch " + query.Encode())
	response, err := k.do(ctx, r)
	if err != nil {
		k.lines = append(k.lines, line+k.refusal(err))
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = response.BodyReader.Close() })
	defer stop()
	defer func() { _ = response.BodyReader.Close() }()
	line += fmt.Sprintln(response.Code, "pings:", response.Pings)
	act()
	for frame, err := range wire.Frames(io.Reader(response.BodyReader)) {
		if err != nil {
			k.t.Errorf("%safter %d events fewer: %v", line, n, err)
			break
		}
		var object map[string]any
		if err := json.Unmarshal(frame.Object, &object); err != nil {
			k.t.Fatal(err)
		}
		if frame.Type == "ERROR" {
			delete(object, "message")
		}
		if frame.Type == "BOOKMARK" {
			// A bookmark has no content. Which empty fields it has depends on the kind.
			object = map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": withoutEmpty(object["metadata"])}
			delete(object["metadata"].(map[string]any), "resourceVersion") // others write to the real server too
		}
		line += frame.Type + " " + k.words(object) + "\n"
		if n--; n == 0 {
			break
		}
	}
	k.lines = append(k.lines, line)
}

func clone(t *testing.T, v map[string]any) (c map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withoutEmpty(v any) any {
	m, _ := v.(map[string]any)
	for name, each := range m {
		if each == nil {
			delete(m, name)
		}
	}
	return m
}

func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

func (k *talk) create(body string) {
	k.t.Helper()
	k.send(wire.Request{Verb: wire.VerbCreate, Body: []byte(k.typed(body)), Query: query("fieldManager", "creator")})
}

func (k *talk) update(name, subresource, body string) {
	k.t.Helper()
	k.send(wire.Request{Verb: wire.VerbUpdate, Name: name, Subresource: subresource, Body: []byte(k.typed(body)), Query: query("fieldManager", "updater")})
}

func (k *talk) apply(name, subresource, manager, body string, force bool) {
	k.t.Helper()
	q := query("fieldManager", manager)
	if force {
		q.Set("force", "true")
	}
	k.send(wire.Request{Verb: wire.VerbPatch, Name: name, Subresource: subresource, ContentType: wire.ContentApply, Body: []byte(k.typed(named(name, body))), Query: q})
}

func (k *talk) merge(name, subresource, body string) {
	k.t.Helper()
	k.send(wire.Request{Verb: wire.VerbPatch, Name: name, Subresource: subresource, ContentType: wire.ContentMergePatch, Body: []byte(body), Query: query("fieldManager", "merger")})
}

func (k *talk) delete(name, body string) {
	k.t.Helper()
	k.send(wire.Request{Verb: wire.VerbDelete, Name: name, Body: []byte(body)})
}

func (k *talk) get(name string) {
	k.t.Helper()
	k.send(wire.Request{Verb: wire.VerbGet, Name: name})
}

func (k *talk) list(pairs ...string) {
	k.t.Helper()
	k.send(wire.Request{Verb: wire.VerbList, Query: query(pairs...)})
}

// named returns an object with a name.
func named(name, body string) string {
	if body == "{}" {
		return fmt.Sprintf(`{"metadata":{"name":%q}}`, name)
	}
	if rest, has := strings.CutPrefix(body, `{"metadata":{`); has {
		return fmt.Sprintf(`{"metadata":{"name":%q,%s`, name, rest)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},%s`, name, body[1:])
}

// typed returns an object with its kind.
func (k *talk) typed(body string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s`, k.resource.GroupVersion(), k.resource.Kind, body[1:])
}

// The fake server answers as a real API server does, in everything that a client can see.
func TestTheFakeServerAnswersAsARealOne(t *testing.T) {
	t.Parallel()
	nothing := func() {}
	for name, converse := range map[string]func(*talk){
		"create": func(k *talk) {
			k.create(`{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"size":"big"},"status":{"seen":1}}`)
			k.create(`{"metadata":{"name":"a"}}`)
			k.create(`{"metadata":{}}`)
			k.create(`{"metadata":{"name":"b","resourceVersion":"1"}}`)
			k.get("a")
			k.get("missing")
		},
		"update": func(k *talk) {
			k.create(`{"metadata":{"name":"a"},"spec":{"size":"big","number":1}}`)
			first, uid := k.lastMetadata("resourceVersion"), k.lastMetadata("uid")
			k.update("a", "", `{"metadata":{"name":"a","resourceVersion":"`+first+`"},"spec":{"size":"big","number":2}}`)
			k.update("a", "", `{"metadata":{"name":"a","resourceVersion":"`+first+`"},"spec":{"size":"big","number":3}}`)
			k.update("a", "", `{"metadata":{"name":"a","resourceVersion":"`+k.lastMetadata("resourceVersion")+`","uid":"`+uid+`"},"spec":{"size":"big","number":2}}`)
			k.update("a", "", `{"metadata":{"name":"a","resourceVersion":"`+k.lastMetadata("resourceVersion")+`","uid":"other"},"spec":{"size":"big"}}`)
			k.update("missing", "", `{"metadata":{"name":"missing","resourceVersion":"1"}}`)
			k.merge("a", "", `{"spec":{"number":null}}`)
			k.merge("a", "", `{"spec":{"number":null}}`)
			k.merge("a", "", `{"metadata":{"resourceVersion":"`+first+`"}}`)
			k.merge("a", "", `{"metadata":{"uid":"other"}}`)
			k.merge("missing", "", `{}`)
		},
		"apply": func(k *talk) {
			k.apply("a", "", "one", `{"spec":{"size":"big","number":1}}`, false)
			k.apply("a", "", "one", `{"spec":{"size":"big","number":1}}`, false)
			k.apply("a", "", "two", `{"spec":{"number":2}}`, false)
			k.apply("a", "", "two", `{"spec":{"number":1}}`, false)
			k.apply("a", "", "two", `{"spec":{"number":2}}`, true)
			k.apply("a", "", "one", `{"spec":{"size":"big"}}`, false)
			k.apply("a", "", "two", `{"metadata":{"labels":{"x":"y"}}}`, false)
			k.apply("a", "", "two", `{"metadata":{"uid":"other"}}`, false)
			k.apply("a", "", "two", `{"metadata":{"managedFields":[]}}`, false)
			k.apply("a", "", "", `{}`, false)
			k.apply("b", "", "one", `{"metadata":{"uid":"other"}}`, false)
			k.apply("b", "status", "one", `{"status":{"seen":1}}`, false)
		},
		"apply at a version": func(k *talk) {
			k.apply("a", "", "one", `{"metadata":{"resourceVersion":"1"},"spec":{"size":"big"}}`, false)
			k.apply("a", "", "one", `{"metadata":{"resourceVersion":"1"},"spec":{"size":"small"}}`, false)
			k.apply("a", "", "one", `{"metadata":{"resourceVersion":"`+k.lastMetadata("resourceVersion")+`"},"spec":{"size":"small"}}`, false)
		},
		"deletion": func(k *talk) {
			k.create(`{"metadata":{"name":"a","finalizers":["test.example.com/f","test.example.com/g"]},"spec":{"size":"big"}}`)
			k.delete("a", `{"preconditions":{"uid":"other"}}`)
			k.delete("a", `{"preconditions":{"resourceVersion":"1"}}`)
			k.delete("a", "")
			k.delete("a", "")
			k.merge("a", "", `{"metadata":{"finalizers":["test.example.com/new"]}}`)
			k.merge("a", "", `{"metadata":{"finalizers":["test.example.com/g"]}}`)
			k.merge("a", "", `{"metadata":{"finalizers":null}}`)
			k.get("a")
			k.delete("a", "")
			k.create(`{"metadata":{"name":"a"},"spec":{"size":"big"}}`)
			k.delete("a", "")
			k.create(`{"metadata":{"name":"a","finalizers":["test.example.com/f"]},"spec":{"size":"big"}}`)
			k.create(`{"metadata":{"name":"b"},"spec":{"size":"big"}}`)
		},
		"status": func(k *talk) {
			k.create(`{"metadata":{"name":"a"},"spec":{"size":"big"}}`)
			k.merge("a", "status", `{"metadata":{"labels":{"x":"y"}},"spec":{"size":"small"},"status":{"seen":1}}`)
			k.merge("a", "", `{"spec":{"number":7},"status":{"seen":2}}`)
			k.apply("a", "status", "one", `{"metadata":{"uid":"other"},"status":{"seen":1}}`, false)
			k.apply("a", "status", "one", `{"status":{"seen":3}}`, true)
			k.apply("a", "status", "one", `{"metadata":{"resourceVersion":"1"},"status":{"seen":4}}`, true)
			k.get("a")
		},
		"lists": func(k *talk) {
			k.list()
			for _, name := range []string{"c", "a", "b"} {
				k.create(`{"metadata":{"name":"` + name + `","labels":{"x":"` + name + `"}},"spec":{"size":"big"}}`)
			}
			k.list("labelSelector", "x in (a,c)")
			k.list("fieldSelector", "metadata.name=b")
			k.list("limit", "2")
			token, version := k.lastMetadata("continue"), k.lastMetadata("resourceVersion")
			k.delete("c", "")
			k.last = nil
			k.list("limit", "2", "continue", token)
			k.lines = append(k.lines, fmt.Sprint("the pages have one version: ", k.lastMetadata("resourceVersion") == version))
			k.list()
			k.list("limit", "2", "labelSelector", "x=b")
			k.list("labelSelector", "x in (")
			k.list("continue", "nonsense")
			k.list("resourceVersion", "nonsense")
		},
		"watch from a version": func(k *talk) {
			k.create(`{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"size":"big"}}`)
			version := k.lastMetadata("resourceVersion")
			k.create(`{"metadata":{"name":"b"},"spec":{"size":"big"}}`)
			k.watch(query("resourceVersion", version), 4, func() {
				k.merge("a", "", `{"spec":{"number":1}}`)
				k.merge("a", "", `{"spec":{"number":1}}`)
				k.merge("b", "status", `{"status":{"seen":1}}`)
				k.delete("a", "")
			})
			k.create(`{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"size":"big"}}`)
			k.watch(query("resourceVersion", k.lastMetadata("resourceVersion"), "labelSelector", "x=y"), 3, func() {
				k.merge("a", "", `{"metadata":{"labels":{"x":"z"}}}`)
				k.merge("b", "", `{"metadata":{"labels":{"x":"y"}}}`)
				k.delete("b", "")
			})
			k.watch(query("resourceVersion", "nonsense"), 1, nothing)
		},
		"watch from a version that is forgotten": func(k *talk) {
			if fake, ok := k.server.(*fakeserver.Server); ok {
				fake.Advance(10)
				fake.Compact()
			}
			k.watch(query("resourceVersion", "1"), 1, nothing)
		},
		"streaming list": func(k *talk) {
			for _, name := range []string{"c", "a"} {
				k.create(`{"metadata":{"name":"` + name + `"},"spec":{"size":"big"}}`)
			}
			k.watch(query("sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true"), 4, func() {
				k.create(`{"metadata":{"name":"b"},"spec":{"size":"big"}}`)
			})
			k.watch(query("sendInitialEvents", "true", "allowWatchBookmarks", "true"), 1, nothing)
		},
		"a collection": func(k *talk) {
			k.create(`{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"size":"big"}}`)
			k.create(`{"metadata":{"name":"b","finalizers":["test.example.com/f"],"labels":{"x":"y"}},"spec":{"size":"big"}}`)
			k.create(`{"metadata":{"name":"c"},"spec":{"size":"big"}}`)
			k.send(wire.Request{Verb: wire.VerbDeleteCollection, Query: query("labelSelector", "x=y")})
			k.list()
		},
		"dry run": func(k *talk) {
			k.send(wire.Request{Verb: wire.VerbCreate, Body: []byte(k.typed(`{"metadata":{"name":"a"},"spec":{"size":"big"}}`)), Query: query("fieldManager", "creator", "dryRun", "All")})
			k.get("a")
			k.create(`{"metadata":{"name":"a"},"spec":{"size":"big"}}`)
			k.delete("a", `{"dryRun":["All"]}`)
			k.get("a")
		},
		"subresource that the kind does not have": func(k *talk) {
			k.create(`{"metadata":{"name":"a"},"spec":{"size":"big"}}`)
			k.merge("a", "nothing", `{}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := yaretest.Shared(t)
			if serverminor.Of(t, cluster) < 36 {
				t.Skip("the order of managedFields is that of 1.36 and later")
			}
			gadget.Define(t, cluster)
			talkTo := func(server wire.Handler, namespace string) []string {
				k := &talk{t: t, server: server, resource: gadget.Gadgets(), namespace: namespace, names: make(map[string]string)}
				converse(k)
				return k.lines
			}
			actual, fake := talkTo(cluster.Client(t), cluster.Namespace(t)), talkTo(fakeserver.New(), "default")
			for i := range max(len(actual), len(fake)) {
				var a, f string
				if i < len(actual) {
					a = actual[i]
				}
				if i < len(fake) {
					f = fake[i]
				}
				if a != f {
					t.Errorf("the fake server differs (-real +fake):\n%s", cmp.Diff(strings.Split(a, "\n"), strings.Split(f, "\n")))
				}
			}
		})
	}
}
