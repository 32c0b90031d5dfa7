package admission_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// patched returns the JSON after the operations of a patch, which are all add.
func patched(t *testing.T, object string, patch []byte) string {
	t.Helper()
	var value any
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal([]byte(object), &value); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	for _, o := range operations {
		if o.Op != "add" {
			t.Errorf("the operation %s", o.Op)
		}
		value = addAt(t, value, strings.Split(o.Path, "/")[1:], o.Value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func addAt(t *testing.T, in any, path []string, value any) any {
	t.Helper()
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch in := in.(type) {
	case map[string]any:
		if len(path) > 1 {
			value = addAt(t, in[name], path[1:], value)
		} else if _, isThere := in[name]; isThere {
			t.Errorf("%s is replaced", name)
		}
		in[name] = value
		return in
	case []any:
		if name == "-" {
			return append(in, value)
		}
		i := int(name[0] - '0')
		in[i] = addAt(t, in[i], path[1:], value)
		return in
	}
	t.Errorf("%s has no place in %v", name, in)
	return in
}

// A defaulter only adds.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(w *widget)
		request string
		// want is the object afterwards, and empty if it stays.
		want    string
		dropped int
	}{
		"nothing":              {func(*widget) {}, `{"spec":{}}`, ``, 0},
		"a field":              {func(w *widget) { w.Spec.Policy = "x" }, `{"spec":{}}`, `{"spec":{"policy":"x"}}`, 0},
		"a pointer":            {func(w *widget) { w.Spec.Limit = new(int32(0)) }, `{"spec":{}}`, `{"spec":{"limit":0}}`, 0},
		"without a spec":       {func(w *widget) { w.Spec.Policy = "x" }, `{}`, `{"spec":{"policy":"x"}}`, 0},
		"a field of a struct":  {func(w *widget) { w.Spec.Box.Width = 1 }, `{"spec":{}}`, `{"spec":{"box":{"width":1}}}`, 0},
		"beside a field":       {func(w *widget) { w.Spec.Box.Width = 1 }, `{"spec":{"box":{"height":2}}}`, `{"spec":{"box":{"height":2,"width":1}}}`, 0},
		"in an empty struct":   {func(w *widget) { w.Spec.Box.Width = 1 }, `{"spec":{"box":{}}}`, `{"spec":{"box":{"width":1}}}`, 0},
		"unknown fields":       {func(w *widget) { w.Spec.Policy = "x" }, `{"other":1,"spec":{"un/known":{"a":1.50}}}`, `{"other":1,"spec":{"un/known":{"a":1.50},"policy":"x"}}`, 0},
		"a key with a slash":   {func(w *widget) { w.Spec.Content["a/b~c"] = "x" }, `{"spec":{"content":{"k":"v"}}}`, `{"spec":{"content":{"k":"v","a/b~c":"x"}}}`, 0},
		"an item of a map":     {func(w *widget) { w.Spec.Ports = append(w.Spec.Ports, widgetPort{Name: "b"}) }, `{"spec":{"ports":[{"name":"a"}]}}`, `{"spec":{"ports":[{"name":"a"},{"name":"b"}]}}`, 0},
		"in an item of a map":  {func(w *widget) { w.Spec.Ports[1].Port = 7 }, `{"spec":{"ports":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"ports":[{"name":"a"},{"name":"b","port":7}]}}`, 0},
		"a moved item":         {func(w *widget) { w.Spec.Ports = append([]widgetPort{{Name: "c"}}, w.Spec.Ports...) }, `{"spec":{"ports":[{"name":"a"}]}}`, `{"spec":{"ports":[{"name":"a"},{"name":"c"}]}}`, 0},
		"an element of a set":  {func(w *widget) { w.Spec.Tags = append(w.Spec.Tags, "b") }, `{"spec":{"tags":["a"]}}`, `{"spec":{"tags":["a","b"]}}`, 0},
		"a whole list":         {func(w *widget) { w.Spec.Args = []string{"a"} }, `{"spec":{}}`, `{"spec":{"args":["a"]}}`, 0},
		"a whole atom":         {func(w *widget) { w.Spec.Atom = &widgetBox{Width: 1} }, `{"spec":{}}`, `{"spec":{"atom":{"width":1}}}`, 0},
		"a null":               {func(w *widget) { w.Spec.Limit = new(int32(3)) }, `{"spec":{"limit":null}}`, ``, 0},
		"a change":             {func(w *widget) { w.Spec.Policy = "x" }, `{"spec":{"policy":"y"}}`, ``, 1},
		"a zero":               {func(w *widget) { w.Spec.Replicas = 3 }, `{"spec":{"replicas":0}}`, ``, 1},
		"an empty text":        {func(w *widget) { w.Spec.Policy = "x" }, `{"spec":{"policy":""}}`, ``, 1},
		"a removal":            {func(w *widget) { w.Spec.Policy = "" }, `{"spec":{"policy":"x"}}`, ``, 1},
		"a removed struct":     {func(w *widget) { w.Spec.Atom = nil }, `{"spec":{"atom":{"width":1}}}`, ``, 1},
		"in an atomic list":    {func(w *widget) { w.Spec.Args = append(w.Spec.Args, "b") }, `{"spec":{"args":["a"]}}`, ``, 1},
		"in an empty list":     {func(w *widget) { w.Spec.Args = []string{"a"} }, `{"spec":{"args":[]}}`, ``, 1},
		"in an atomic struct":  {func(w *widget) { w.Spec.Atom.Height = 1 }, `{"spec":{"atom":{"width":1}}}`, ``, 1},
		"a removed item":       {func(w *widget) { w.Spec.Ports = w.Spec.Ports[1:] }, `{"spec":{"ports":[{"name":"a"},{"name":"b"}]}}`, ``, 1},
		"a removed element":    {func(w *widget) { w.Spec.Tags = []string{"b"} }, `{"spec":{"tags":["a"]}}`, `{"spec":{"tags":["a","b"]}}`, 1},
		"a label":              {func(w *widget) { w.Labels = map[string]string{"a": "b"} }, `{"spec":{}}`, ``, 1},
		"the status":           {func(w *widget) { w.Status.Phase = "x" }, `{"spec":{}}`, ``, 1},
		"a set status":         {func(w *widget) { w.Status.Phase = "x" }, `{"spec":{},"status":{}}`, ``, 1},
		"some of several":      {func(w *widget) { w.Spec.Policy, w.Spec.Schedule, w.Name = "x", "y", "z" }, `{"spec":{"schedule":"w"}}`, `{"spec":{"schedule":"w","policy":"x"}}`, 2},
		"a pruned other field": {func(w *widget) { w.Spec.Box = widgetBox{Label: "x"} }, `{"spec":{"box":{"width":1}}}`, `{"spec":{"box":{"width":1,"label":"x"}}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defaulter := admission.Defaulter(func(_ context.Context, w *widget) { c.set(w) })
			h, r := newHandler(t, admission.Options{}, defaulter)
			body := review("CREATE", c.request+" ", "")
			if c.request == "{}" {
				body = strings.Replace(body, `"resourceVersion":"7"},}`, `"resourceVersion":"7"}}`, 1)
			}
			a := answerOf(t, h, defaultPath, body)
			switch {
			case !a.Allowed || r.dropped != c.dropped || (a.Patch != nil) != (a.PatchType == "JSONPatch"):
				t.Errorf("%d dropped, %s, %+v", r.dropped, a.Patch, a)
			case c.want == "" && a.Patch != nil:
				t.Errorf("the patch is %s", a.Patch)
			case c.want != "":
				var want any
				if err := json.Unmarshal([]byte(c.want), &want); err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(want)
				if got := patched(t, c.request, a.Patch); err != nil || got != string(text) {
					t.Errorf("%s after %s, not %s", got, a.Patch, text)
				}
			}
			strict, r := newHandler(t, admission.Options{IsStrict: true}, defaulter)
			a = answerOf(t, strict, defaultPath, body)
			if a.Allowed != (c.dropped == 0) || r.dropped != c.dropped {
				t.Errorf("in strict mode: %d dropped, %+v", r.dropped, a)
			}
			if !a.Allowed && !strings.Contains(a.Status.Message, "the webhook default.widgets.webhook.example.com changes or removes what the request sets") {
				t.Errorf("in strict mode: %s", a.Status.Message)
			}
		})
	}
}

// A defaulter that changes its own result is an error in strict mode.
func TestDefaultsThatChangeThemselves(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(w *widget){
		"a list that grows":  func(w *widget) { w.Spec.Tags = append(w.Spec.Tags, strings.Repeat("x", len(w.Spec.Tags)+1)) },
		"a text that grows":  func(w *widget) { w.Spec.Policy += "x" },
		"a field after that": func(w *widget) { w.Spec.Policy, w.Spec.Schedule = w.Spec.Schedule, "x" },
	} {
		h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.Defaulter(func(_ context.Context, w *widget) { set(w) }))
		if a := answerOf(t, h, defaultPath, review("CREATE", `{"spec":{}}`, "")); a.Status.Code != 500 || !strings.Contains(a.Status.Message, "changes its own result") {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// A defaulter is not called for an object that is being deleted, nor outside of the namespaces of the program.
func TestObjectsWithoutDefaults(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, admission.Options{Namespaces: []string{"shop"}}, admission.Defaulter(func(_ context.Context, w *widget) {
		t.Errorf("the defaulter was called for %s/%s", w.Namespace, w.Name)
	}))
	good := review("UPDATE", `{"spec":{}}`, `{"spec":{}}`)
	for _, body := range []string{
		strings.ReplaceAll(good, `"name":"a","resource`, `"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z","resource`),
		strings.ReplaceAll(good, "shop", "other"),
		review("DELETE", "", `{"spec":{}}`),
	} {
		if a := answerOf(t, h, defaultPath, body); !a.Allowed || a.Patch != nil {
			t.Errorf("the answer is %+v", a)
		}
	}
}
