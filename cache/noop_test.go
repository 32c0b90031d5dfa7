package cache

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/yare-go/yare/kube"
)

// applier is a client that checks whether an apply would change anything, over a server
// that takes every apply and answers with what the test has put there.
type applier struct {
	*testing.T
	server  *server
	caches  *Cache
	stream  *Subscription
	applies *Applies
	client  kube.Handler
	sent    int
	// triggers is what the controller says.
	triggers bool
	err      error
}

func onApplier(t *testing.T, test func(*applier)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &applier{T: t, server: newServer(), triggers: true}
		a.caches = New(a.server)
		defer a.caches.Close()
		var err error
		if a.stream, err = a.caches.Open(t.Context(), webApps, func(Event) {}); err != nil {
			t.Fatal(err)
		}
		a.restart()
		synctest.Wait()
		test(a)
	})
}

func (a *applier) restart() {
	a.applies = a.caches.Applies()
	server := kube.HandlerFunc(func(context.Context, *kube.Request) (*kube.Response, error) {
		a.sent++
		a.server.mu.Lock()
		defer a.server.mu.Unlock()
		if a.err != nil {
			return nil, a.err
		}
		return &kube.Response{Code: 200, Body: []byte(a.server.objects[Key{"ns", "a"}])}, nil
	})
	a.client = a.applies.SkipUnchanged(a.caches.Handler(server), func(kube.Resource, Record, []byte) bool { return a.triggers })
}

// live puts an object there: with members of its metadata beside the usual ones, and the
// rest of it.
func (a *applier) live(metadata, rest string) {
	a.Helper()
	a.server.put(Key{"ns", "a"}, func(version int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"%d"%s}%s}`, version, metadata, rest)
	})
	synctest.Wait()
}

// apply tells whether a request was made.
func (a *applier) apply(body string, options ...string) bool {
	a.Helper()
	r := &kube.Request{
		Verb: kube.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a", ContentType: kube.ContentApply, Body: []byte(body),
		Query: url.Values{"fieldManager": {"us"}, "force": {"true"}},
	}
	for i := 0; i < len(options); i += 2 {
		if options[i] == "subresource" {
			r.Subresource = options[i+1]
		} else {
			r.Query.Set(options[i], options[i+1])
		}
	}
	before := a.sent
	_, err := a.client.Do(a.Context(), r)
	if err != nil && a.err == nil {
		a.Fatal(err)
	}
	return a.sent > before
}

// ours is our managedFields entry.
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
			a.err = &kube.Error{Unknown: true, Err: context.DeadlineExceeded}
			a.apply(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"a":7}}`)
			a.err = nil
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
		a.err = &kube.Error{Code: 403}
		a.apply(`{"metadata":{"name":"a"},"spec":{"a":2}}`)
		a.err = nil
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
			k := applyKey{object: overlayKey{group: "example.com", plural: "webapps", namespace: "ns", name: fmt.Sprint("gone", i)}, resource: webApps.Resource}
			a.applies.put(k, applied{uid: "u"})
		}
		if n := len(a.applies.last); n > 2*firstApplySweep {
			t.Errorf("%d applies are remembered", n)
		}
		if a.apply(wantA) {
			t.Error("that of the object that is there was forgotten")
		}
	})
}

// ownsExactly against what servers write, and what they could.
func TestOwnsExactly(t *testing.T) {
	t.Parallel()
	const others = `{"f:shared":{".":{},"f:x":{}}}`
	for _, c := range []struct {
		name, owned, want, live string
		yes                     bool
	}{
		{"a value", `{"f:a":{}}`, `{"a":1}`, `{"a":1,"b":2}`, true},
		{"another value", `{"f:a":{}}`, `{"a":1}`, `{"a":2}`, false},
		{"a missing value", `{"f:a":{}}`, `{"a":1}`, `{}`, false},
		{"one not wanted any more", `{"f:a":{},"f:b":{}}`, `{"a":1}`, `{"a":1,"b":2}`, false},
		{"one not owned", `{"f:a":{}}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, false},
		{"an atomic list", `{"f:a":{}}`, `{"a":[1,2]}`, `{"a":[1,2]}`, true},
		{"an atomic list in another order", `{"f:a":{}}`, `{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{"an atomic map with a default in it", `{"f:a":{}}`, `{"a":{"x":1}}`, `{"a":{"x":1,"y":2}}`, false},
		{"an empty object that others have filled", `{"f:a":{".":{}}}`, `{"a":{}}`, `{"a":{"y":2}}`, true},
		{"an object that was empty, and that others have filled as we want it now", `{"f:shared":{}}`, `{"shared":{"x":1}}`, `{"shared":{"x":1}}`, false},
		{"an object that is to be empty and is", `{"f:shared":{}}`, `{"shared":{}}`, `{"shared":{}}`, true},
		{"a set", `{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}`, `{"a":["x","y"]}`, `{"a":["x","z","y"]}`, true},
		{"a set in another order", `{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}`, `{"a":["x","y"]}`, `{"a":["y","x"]}`, false},
		{"a set with one too few", `{"f:a":{"v:\"x\"":{}}}`, `{"a":["x","y"]}`, `{"a":["x","y"]}`, false},
		{"a keyed list", `{"f:a":{"k:{\"p\":80}":{".":{},"f:p":{},"f:n":{}}}}`, `{"a":[{"p":80,"n":"x"}]}`, `{"a":[{"p":81},{"p":80,"n":"x","d":1}]}`, true},
		{"a keyed list, a value in it", `{"f:a":{"k:{\"p\":80}":{".":{},"f:p":{},"f:n":{}}}}`, `{"a":[{"p":80,"n":"x"}]}`, `{"a":[{"p":80,"n":"y"}]}`, false},
		{"a defaulted key", `{"f:a":{"k:{\"p\":80,\"q\":\"TCP\"}":{".":{},"f:p":{}}}}`, `{"a":[{"p":80}]}`, `{"a":[{"p":80,"q":"TCP"},{"p":80,"q":"UDP"}]}`, true},
		{"two that a defaulted key could be", `{"f:a":{"k:{\"p\":80,\"q\":\"TCP\"}":{".":{},"f:p":{}}}}`, `{"a":[{"p":80},{"p":80,"q":"TCP"}]}`, `{"a":[{"p":80,"q":"TCP"}]}`, false},
		{"the same twice", `{"f:a":{"v:\"x\"":{}}}`, `{"a":["x","x"]}`, `{"a":["x"]}`, false},
		{"a notation of the future", `{"f:a":{"i:0":{}}}`, `{"a":[1]}`, `{"a":[1]}`, false},
		{"another kind of value", `{"f:a":{"f:b":{}}}`, `{"a":{"b":1}}`, `{"a":[1]}`, false},
	} {
		if got := ownsExactly(decoded(t, c.owned), []map[string]any{decoded(t, others)}, decoded(t, c.want), decoded(t, c.live)); got != c.yes {
			t.Errorf("%s: %t, want %t", c.name, got, c.yes)
		}
	}
}

// decoded is JSON as the check reads it.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	l := liveObject{object: fmt.Appendf(nil, `{"metadata":{},"it":%s}`, text)}
	if err := l.decode(); err != nil {
		t.Fatal(err)
	}
	return l.fields["it"].(map[string]any)
}
