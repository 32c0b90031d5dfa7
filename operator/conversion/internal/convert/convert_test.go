package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// A converted is an object for tests.
type converted struct {
	Conversion
	APIVersion string
	Metadata   struct {
		UID, Name   string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec map[string]any
}

// convertText returns an object in another version.
func convertText(t testing.TB, k *Kind, object, target string) converted {
	t.Helper()
	c, err := k.Convert([]byte(object), target)
	if err != nil {
		t.Fatal(err)
	}
	result := converted{Conversion: c}
	if err := json.Unmarshal(c.Object, &result); err != nil {
		t.Fatalf("%v: %s", err, c.Object)
	}
	return result
}

// canonical returns the JSON of an object with sorted members.
func canonical(t testing.TB, object string) string {
	t.Helper()
	v, isObject := jsontree.ParseObject([]byte(object))
	if !isObject {
		t.Fatalf("no object: %s", object)
	}
	return string(jsontree.Append(nil, v))
}

// There and back is the identity, and there, back and there gives the same bytes. What the target cannot express is kept.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	for name, c := range map[string]struct {
		version, spec string
		// kept is the text of the annotation, or empty if the object converts without loss.
		kept string
	}{
		"without loss": {"v1", `"schedule":"5 1 * * *","suspend":true` + cronTemplate, ""},
		"a macro": {"v1", `"schedule":"@hourly"` + cronTemplate,
			`{"original":"@hourly","path":["spec","schedule"],"returned":"0 * * * *","to":"v2"}`},
		"false is not absent": {"v1", `"schedule":"5 1 * * *","suspend":false` + cronTemplate,
			`{"from":2,"original":false,"path":["spec","suspend"],"to":"v2"}`},
		"an empty list": {"v1", `"schedule":"5 1 * * *","ports":[],"notes":{}` + cronTemplate,
			`{"from":2,"original":[],"path":["spec","ports"],"to":"v2"}
{"from":2,"original":{},"path":["spec","notes"],"to":"v2"}`},
		"an item": {"v1", `"schedule":"5 1 * * *","ports":[{"name":"b","port":2,"public":true},{"name":"a","port":1}]` + cronTemplate,
			`{"from":3,"original":2,"path":["spec","ports",{"name":"b"},"port"],"to":"v2"}
{"from":3,"original":true,"path":["spec","ports",{"name":"b"},"public"],"to":"v2"}
{"order":true,"original":[{"name":"b"},{"name":"a"}],"path":["spec","ports"],"returned":[{"name":"a"}],"to":"v2"}`},
		"large numbers": {"v1", `"schedule":"5 1 * * *","limits":{"a":9223372036854775807,"b":-9007199254740993}` + cronTemplate,
			`{"from":2,"original":-9007199254740993,"path":["spec","limits","b"],"to":"v2"}
{"from":2,"original":9223372036854775807,"path":["spec","limits","a"],"to":"v2"}`},
		"the zero fields of a Go program": {"v1", `"schedule":"5 1 * * *","template":{"metadata":{},"spec":{"containers":[{"name":"main","resources":{}}]}}`, ""},
		"an empty pointer":                {"v1", `"schedule":"5 1 * * *","template":{"spec":{"containers":[{"name":"main"}],"volumes":[{"name":"x","emptyDir":{}}]}}`, ""},
		"a note": {"v1", `"schedule":"5 1 * * *","notes":{"x":{"text":"t","author":"jane"}}` + cronTemplate,
			`{"from":4,"original":"jane","path":["spec","notes","x","author"],"to":"v2"}`},
		"a zone": {"v2", `"schedule":{"minute":"5","hour":"1","dayOfMonth":"*","month":"*","dayOfWeek":"*"},"suspend":false,"zone":"Europe/Berlin"` + cronTemplate,
			`{"from":2,"original":"Europe/Berlin","path":["spec","zone"],"to":"v1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := map[string]string{"v1": "v2", "v2": "v1"}[c.version]
			h := cronObject(c.version, c.spec)
			there := convertText(t, k, h, target)
			if there.IsIncomplete || there.APIVersion != "batch.example.com/"+target {
				t.Fatalf("%+v", there.Conversion)
			}
			got := keptText(there, c.version)
			if got != c.kept {
				t.Errorf("kept %s, want %s", got, c.kept)
			}
			back := convertText(t, k, string(there.Object), c.version)
			if string(back.Object) != canonical(t, h) {
				t.Errorf("home  %s\nthere %s\nback  %s", canonical(t, h), there.Object, back.Object)
			}
			if again := convertText(t, k, string(back.Object), target); string(again.Object) != string(there.Object) {
				t.Errorf("there %s\nagain %s", there.Object, again.Object)
			}
		})
	}
}

// Bug: the other version of an object with free content had 9007199254740992 in place of the integer 9007199254740993.
func TestIntegersOfFreeContent(t *testing.T) {
	t.Parallel()
	first, err := kube.ResourceOf[free1]()
	if err != nil {
		t.Fatal(err)
	}
	second := first
	second.Version = "v2"
	k, err := NewKind([]Version{{Resource: first, Served: true, Storage: true}, {Resource: second, Served: true}}, []*Step{NewStep(
		func(a *free1, b *free2) { b.Spec = freeSpec2(a.Spec) }, func(b *free2, a *free1) { a.Spec = freeSpec1(b.Spec) },
	)})
	if err != nil {
		t.Fatal(err)
	}
	const spec = `"spec":{"id":9007199254740993,"list":[-9223372036854775808,1.5]}`
	there := convertText(t, k, `{"apiVersion":"laws.example.com/v1","kind":"Free","metadata":{"name":"a"},`+spec+`}`, "v2")
	if text := keptText(there, "v1"); text != "" || !strings.Contains(string(there.Object), spec) {
		t.Errorf("the object in v2 is %s, and the annotations keep %q", there.Object, text)
	}
}

// keptText returns the values of the annotations that keep values of a version, sorted.
func keptText(c converted, version string) string {
	var texts []string
	for key, text := range c.Metadata.Annotations {
		if v, isKept := VersionOfAnnotation(key); isKept && v == version {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// An edit in v2 changes at home what the function makes of it, and nothing else.
func TestEdits(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	home := cronObject("v1", `"schedule":"@hourly","suspend":false,"policy":"Forbid","ports":[{"name":"p","port":9,"public":true},{"name":"a","port":1},{"name":"b","port":2}],"notes":{"x":{"text":"t","author":"jane"}}`+cronTemplate)
	there := string(convertText(t, k, home, "v2").Object)
	for name, c := range map[string]struct{ old, new, want string }{
		"a field":          {`"minute":"0"`, `"minute":"7"`, `"schedule":"7 * * * *"`},
		"there and back":   {`"suspend":false`, `"suspend":true`, `"suspend":true`},
		"an item":          {`{"name":"a","number":1}`, `{"name":"a","number":5}`, `"ports":[{"name":"p","port":9,"public":true},{"name":"a","port":5},{"name":"b","port":2}]`},
		"an item less":     {`{"name":"a","number":1},`, ``, `"ports":[{"name":"p","port":9,"public":true},{"name":"b","port":2}]`},
		"an item more":     {`{"name":"b","number":2}`, `{"name":"c","number":3},{"name":"b","number":2}`, `"ports":[{"name":"p","port":9,"public":true},{"name":"a","port":1},{"name":"c","port":3},{"name":"b","port":2}]`},
		"another order":    {`{"name":"a","number":1},{"name":"b","number":2}`, `{"name":"b","number":2},{"name":"a","number":1}`, `"ports":[{"name":"p","port":9,"public":true},{"name":"b","port":2},{"name":"a","port":1}]`},
		"a value of a map": {`"x":"t"`, `"x":"u"`, `"notes":{"x":{"author":"jane","text":"u"}}`},
		"a key of a map":   {`"x":"t"`, `"y":"t"`, `"notes":{"y":{"text":"t"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := strings.Replace(there, c.old, c.new, 1)
			if edited == there {
				t.Fatalf("%s is not in %s", c.old, there)
			}
			back := convertText(t, k, edited, "v1")
			before, _ := jsontree.ParseObject([]byte(home))
			change, _ := jsontree.ParseObject([]byte("{" + c.want + "}"))
			maps.Copy(before["spec"].(map[string]any), change)
			if want := string(jsontree.Append(nil, before)); string(back.Object) != want {
				t.Errorf("got  %s\nwant %s", back.Object, want)
			}
		})
	}
}

// No value is invalid at home because of an annotation, and no text of an annotation makes a conversion fail.
func TestForgedAnnotations(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	entryText := func(path, back, home string) string {
		return `{"original":` + home + `,"path":` + path + `,"returned":` + back + `,"to":"v2"}`
	}
	schedule := `"schedule":{"minute":"5","hour":"*","dayOfMonth":"*","month":"*","dayOfWeek":"*"},"suspend":false,"ports":[{"name":"a","number":1}]` + cronTemplate
	for name, c := range map[string]struct {
		annotation string
		// wantSpec is a part of the JSON of the spec at home.
		wantSpec string
		isLeft   bool
	}{
		"another value":          {entryText(`["spec","schedule"]`, `"5 * * * *"`, `"@daily"`), `"schedule":"@daily"`, false},
		"an old value":           {entryText(`["spec","schedule"]`, `"6 * * * *"`, `"@daily"`), `"schedule":"5 * * * *"`, false},
		"a wrong type":           {entryText(`["spec","schedule"]`, `"5 * * * *"`, `7`), `"schedule":"5 * * * *"`, true},
		"a pattern":              {entryText(`["spec","schedule"]`, `"5 * * * *"`, `"never"`), `"schedule":"5 * * * *"`, true},
		"an enum":                {`{"original":"Sometimes","path":["spec","policy"],"to":"v2"}`, `"schedule":"5 * * * *"`, true},
		"a required field less":  {`{"path":["spec","schedule"],"returned":"5 * * * *","to":"v2"}`, `"schedule":"5 * * * *"`, true},
		"an unknown field":       {`{"original":1,"path":["spec","unknown"],"to":"v2"}`, `"schedule":"5 * * * *"`, true},
		"an unknown root field":  {`{"original":1,"path":["other"],"to":"v2"}`, `"schedule":"5 * * * *"`, true},
		"a part of an item":      {`{"path":["spec","ports",{"name":"a"},"port"],"returned":1,"to":"v2"}`, `"ports":[{"name":"a","port":1}]`, true},
		"a key of an item":       {`{"original":"b","path":["spec","ports",{"name":"a"},"name"],"returned":"a","to":"v2"}`, `"ports":[{"name":"a","port":1}]`, false},
		"an item of another key": {`{"original":{"name":"z","port":1},"path":["spec","ports",{"name":"y"}],"to":"v2"}`, `"ports":[{"name":"a","port":1}]`, false},
		"an item":                {`{"original":{"name":"y","port":1},"path":["spec","ports",{"name":"y"}],"to":"v2"}`, `"ports":[{"name":"a","port":1},{"name":"y","port":1}]`, false},
		"an item with a text":    {`{"original":"y","path":["spec","ports",{"name":"y"}],"to":"v2"}`, `"ports":[{"name":"a","port":1}]`, true},
		"an int32":               {entryText(`["spec","ports",{"name":"a"},"port"]`, `1`, `4294967297`), `"port":1`, true},
		"the metadata":           {entryText(`["metadata","name"]`, `"a"`, `"b"`), `"schedule":"5 * * * *"`, false},
		"the kind":               {entryText(`["kind"]`, `"CronJob"`, `"b"`), `"schedule":"5 * * * *"`, false},
		"an empty path":          {entryText(`[]`, `null`, `{}`), `"schedule":"5 * * * *"`, false},
		"a number in a path":     {entryText(`[1]`, `null`, `{}`), `"schedule":"5 * * * *"`, false},
		"a bad order":            {`{"order":true,"original":[1],"path":["spec","ports"],"returned":7,"to":"v2"}`, `"port":1`, false},
		"an order of strangers":  {`{"order":true,"original":[{"name":"a"},{"name":"a"},{}],"path":["spec","ports"],"returned":[{"x":1}],"to":"v2"}`, `"port":1`, false},
		"bad JSON":               {`{"v2":[`, `"schedule":"5 * * * *"`, false},
		"a text":                 {`v2`, `"schedule":"5 * * * *"`, false},
		"an array":               {`[]`, `"schedule":"5 * * * *"`, false},
		"a megabyte":             {`{"v2":"` + strings.Repeat("x", 1<<20) + `"}`, `"schedule":"5 * * * *"`, false},
		"depth":                  {`{"original":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"path":["spec","policy"],"to":"v2"}`, `"schedule":"5 * * * *"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _ := json.Marshal(c.annotation)
			object := strings.Replace(cronObject("v2", schedule), `"uid"`, `"annotations":{"`+Prefix+`v1.forged":`+string(text)+`},"uid"`, 1)
			home := convertText(t, k, object, "v1")
			o, _ := parseObject(home.Object)
			check := k.checks["v1"]
			if path := check.misfit(check.root, o.content, ""); path != "" {
				t.Errorf("%s does not fit the schema: %s", path, home.Object)
			}
			if spec := string(jsontree.Append(nil, o.content["spec"])); !strings.Contains(spec, c.wantSpec) {
				t.Errorf("the spec is %s, want %s", spec, c.wantSpec)
			}
			left := keptText(home, "v1")
			if isLeft := strings.Contains(left, `"left":true`); isLeft != c.isLeft {
				t.Errorf("left at home: %.300s", left)
			}
			// What is left stays kept on each further way.
			there := convertText(t, k, string(home.Object), "v2")
			back := convertText(t, k, string(there.Object), "v1")
			if string(back.Object) != string(home.Object) {
				t.Errorf("home %.500s\nback %.500s", home.Object, back.Object)
			}
		})
	}
}

// A value that does not decode into the Go type, or that the schema does not have, is kept and never lost.
func TestObjectsThatDoNotFit(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	for name, spec := range map[string]string{
		"a wrong type":            `"schedule":7,"policy":"Forbid"` + cronTemplate,
		"a wrong type in an item": `"schedule":"@daily","ports":[{"name":"a","port":"http"},{"name":"b","port":2}]` + cronTemplate,
		"an item without a key":   `"schedule":"@daily","ports":[{"port":1}]` + cronTemplate,
		"a key twice":             `"schedule":"@daily","ports":[{"name":"a","port":1},{"name":"a","port":2}]` + cronTemplate,
		"a list for an object":    `"schedule":"@daily","template":[1]`,
		"an object for a list":    `"schedule":"@daily","ports":{"a":1}` + cronTemplate,
		"a null":                  `"schedule":null,"suspend":null,"ports":null,"notes":{"x":null}` + cronTemplate,
		"unknown fields":          `"schedule":"@daily","former":{"a":[1,2.50,{"b":null}]}` + cronTemplate,
		"a bad value of a map":    `"schedule":"@daily","limits":{"a":"many","b":2,"c":1.50}` + cronTemplate,
		"required fields less":    `"policy":"Allow"`,
		"nothing":                 ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := cronObject("v1", spec)
			there := convertText(t, k, whole, "v2")
			home := convertText(t, k, string(there.Object), "v1")
			again := convertText(t, k, string(home.Object), "v2")
			if there.IsIncomplete || string(again.Object) != string(there.Object) {
				t.Errorf("there %s\nhome  %s\nagain %s", there.Object, home.Object, again.Object)
			}
			// All values of the object are at home: in their place, or left in the annotation.
			o, _ := parseObject([]byte(whole))
			got, _ := parseObject(home.Object)
			content := got.content
			for _, e := range got.record("v1").sections["v2"] {
				content, _ = put(nilSchemaOf(k), content, e.path, e.original).(map[string]any)
			}
			if !jsontree.Equal(o.content, content) {
				t.Errorf("home was %s\nand is  %s with %s", jsontree.Append(nil, o.content), jsontree.Append(nil, content), home.Metadata.Annotations)
			}
		})
	}
}

// nilSchemaOf returns the check of version v1.
func nilSchemaOf(k *Kind) *schemaCheck { return k.checks["v1"] }

// put returns v with a value at a path.
func put(c *schemaCheck, v any, path []segment, value any) any {
	var walk func(v any, path []segment) any
	walk = func(v any, path []segment) any {
		if len(path) == 0 {
			return value
		}
		if path[0].isKey {
			s := c.root.Properties["spec"].Properties["ports"]
			list, _ := jsontree.KeyedListOf(s, v)
			changed := list.Clone()
			changed.Set(path[0].text, walk(list.Item(path[0].text), path[1:]))
			return changed.List()
		}
		object, _ := v.(map[string]any)
		if object = maps.Clone(object); object == nil {
			object = make(map[string]any)
		}
		jsontree.SetMember(object, path[0].text, walk(jsontree.Member(object, path[0].text), path[1:]))
		return object
	}
	return walk(v, path)
}

// API servers convert parts of objects for an apply: there is no uid, and any field can be missing.
func TestPartsOfObjects(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	for name, text := range map[string]string{
		"no metadata":           `{"apiVersion":"batch.example.com/v1","kind":"CronJob"}`,
		"no spec":               `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"labels":{"a":"b"}}}`,
		"a status":              `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"status":{"active":1}}`,
		"one field":             `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"policy":"Forbid"}}`,
		"an item":               `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"ports":[{"name":"a"}]}}`,
		"an inexpressible item": `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"ports":[{"name":"a","public":true}]}}`,
		"a null":                `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"suspend":null,"ports":null}}`,
		"an empty spec":         `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{}}`,
		"a null spec":           `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{"name":"a"},"spec":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := convertText(t, k, text, "v2")
			back := convertText(t, k, string(there.Object), "v1")
			want, _ := jsontree.ParseObject([]byte(text))
			if want["metadata"] == nil {
				want["metadata"] = map[string]any{} // an API server refuses a result without metadata
			}
			if want := string(jsontree.Append(nil, want)); there.IsIncomplete || string(back.Object) != want {
				t.Errorf("home  %s\nthere %s\nback  %s", want, there.Object, back.Object)
			}
		})
	}
}

// An object from which something is left out is delivered with a mark, and loses no more on further ways.
func TestIncompleteObjects(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	notes := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"n%d":{"author":"%s"}`, i, strings.Repeat("a", 1000))
		}
		return `"notes":{` + b.String()[1:] + `}`
	}
	for name, c := range map[string]struct{ version, spec, reason string }{
		"a panic":         {"v1", `"schedule":"panic","policy":"Forbid"` + cronTemplate, "panic"},
		"a panic back":    {"v2", `"schedule":{"minute":"panic","hour":"*","dayOfMonth":"*","month":"*","dayOfWeek":"*"},"suspend":false,"zone":"UTC"` + cronTemplate, "panic"},
		"200 KiB":         {"v1", `"schedule":"@daily",` + notes(200) + cronTemplate, "size"},
		"100 KiB":         {"v1", `"schedule":"@daily",` + notes(100) + cronTemplate, ""},
		"one large value": {"v1", `"schedule":"@daily","policy":"Forbid","notes":{"x":{"author":"` + strings.Repeat("a", 200<<10) + `"}}` + cronTemplate, "size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := map[string]string{"v1": "v2", "v2": "v1"}[c.version]
			there := convertText(t, k, cronObject(c.version, c.spec), target)
			mark, isMarked := incompleteMark(there.Metadata.Annotations)
			if want := (Mark{OriginalVersion: c.version, Reason: c.reason}); isMarked != (c.reason != "") || isMarked && mark != want || there.IsIncomplete != isMarked {
				t.Fatalf("the mark is %+v: %+v", mark, there.Failures)
			}
			for _, f := range there.Failures {
				if strings.Contains(f.Err.Error(), "password") || strings.Contains(f.Err.Error(), "aaa") {
					t.Errorf("content in the error: %v", f.Err)
				}
				if c.reason == "panic" && (!strings.Contains(f.Err.Error(), "cron_test.go") || f.Stack == "") {
					t.Errorf("the error does not name the place of the panic: %+v", f)
				}
			}
			size := 0
			for key, value := range there.Metadata.Annotations {
				size += len(key) + len(value)
			}
			if size > maxKept+markSize {
				t.Errorf("the annotations have %d bytes", size)
			}
			if name == "one large value" && !strings.Contains(keptText(there, "v1"), "@daily") {
				t.Errorf("the small values are not kept")
			}
			home := convertText(t, k, string(there.Object), c.version)
			again := convertText(t, k, string(home.Object), target)
			if string(again.Object) != string(there.Object) || home.IsIncomplete != isMarked {
				t.Errorf("there %.2000s\nhome %.2000s\nagain %.2000s", there.Object, home.Object, again.Object)
			}
		})
	}
}

// The result has the metadata of the object, whatever the functions do to it. Functions see the metadata without the
// annotations of conversions.
func TestMetadata(t *testing.T) {
	t.Parallel()
	toV2 := func(a *cron1, b *cron2) {
		cronToV2(a, b)
		b.Name, b.Labels, b.Kind = "other", map[string]string{"x": a.Name}, "Other"
		b.Annotations = map[string]string{Prefix + "v1": "forged"}
		a.Labels["changed"] = "x"
	}
	toV1 := func(b *cron2, a *cron1) {
		cronToV1(b, a)
		if len(b.Annotations) != 1 || b.Annotations["team"] != "blue" || b.Name != "a" || b.ManagedFields != nil {
			a.Spec.Policy = fmt.Sprintf("the function sees %v", b.ObjectMeta)
		}
	}
	k, err := NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t)}, []*Step{NewStep(toV2, toV1)})
	if err != nil {
		t.Fatal(err)
	}
	metadata := `{"annotations":{"team":"blue"%s},"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"x"},"managedFields":[{"fieldsV1":{"f:spec":{}},"manager":"m"}],"name":"a","namespace":"shop","uid":"u1"}`
	h := `{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":` + fmt.Sprintf(metadata, "") + `,"spec":{"schedule":"@daily"` + cronTemplate + `}}`
	there := convertText(t, k, h, "v2")
	kept, _ := json.Marshal(keptText(there, "v1"))
	key, _ := (&entry{path: []segment{{"spec", false}, {"schedule", false}}}).annotation("v1", "v2")
	if want := fmt.Sprintf(metadata, `,"`+key+`":`+string(kept)); !strings.Contains(string(there.Object), want) {
		t.Errorf("the object is %s, want the metadata %s", there.Object, want)
	}
	if strings.Contains(string(kept), "sees") {
		t.Errorf("%s", kept)
	}
	if back := convertText(t, k, string(there.Object), "v1"); string(back.Object) != canonical(t, h) {
		t.Errorf("back %s", back.Object)
	}
}

// When an apply no longer has a field, an API server removes from the object in another version each annotation that the
// object has only with this field. So each field has an annotation of its own.
func TestRemovalByApply(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	merged := `"schedule":"@daily","policy":"Forbid","limits":{"a":1,"b":2},"ports":[{"name":"x","port":1,"public":true}]` + cronTemplate
	for _, field := range []string{`,"policy":"Forbid"`, `,"b":2`, `,"ports":[{"name":"x","port":1,"public":true}]`} {
		pruned := strings.Replace(merged, field, "", 1)
		want := canonical(t, cronObject("v1", pruned))
		there := convertText(t, k, cronObject("v1", merged), "v2")
		others := convertText(t, k, cronObject("v1", pruned), "v2").Metadata.Annotations
		o, _ := parseObject(there.Object)
		removed := 0
		for key := range there.Metadata.Annotations {
			if _, isThere := others[key]; !isThere {
				o.setAnnotation(key, "")
				removed++
			}
		}
		if home := convertText(t, k, string(o.encode()), "v1"); removed == 0 || string(home.Object) != want {
			t.Errorf("%s: home %s\nwant %s", field, home.Object, want)
		}
	}
}

// An annotation of a version that the kind does not have is no business of the conversion.
func TestAnnotationsOfOtherVersions(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	h := strings.Replace(cronObject("v1", `"schedule":"5 * * * *"`+cronTemplate), `"uid"`, `"annotations":{"`+Prefix+`v0":"x"},"uid"`, 1)
	there := convertText(t, k, h, "v2")
	if there.Metadata.Annotations[Prefix+"v0"] != "x" {
		t.Errorf("%s", there.Object)
	}
}

// The annotations of an object with its own 256 KiB still fit an API server.
func TestFullAnnotations(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	for _, size := range []int{200 << 10, 256<<10 - 20, 1 << 20} {
		h := strings.Replace(cronObject("v1", `"schedule":"@daily"`+cronTemplate), `"uid"`, `"annotations":{"a":"`+strings.Repeat("x", size)+`","b":"c"},"uid"`, 1)
		there := convertText(t, k, h, "v2")
		all := 0
		for key, value := range there.Metadata.Annotations {
			all += len(key) + len(value)
		}
		if all > 256<<10 || there.IsIncomplete != (size > 200<<10) || there.Metadata.Annotations["b"] != "c" {
			t.Errorf("%d: the annotations have %d bytes, %+v", size, all, there.Failures)
		}
	}
}

// Two replicas of two releases convert the same objects by turns. The older one does not know a field.
func TestTwoReleases(t *testing.T) {
	t.Parallel()
	newer := cronKind(t)
	olderVersion := versionOf[cron1](t)
	spec := *olderVersion.Schema.Properties["spec"]
	spec.Properties = maps.Clone(spec.Properties)
	delete(spec.Properties, "policy")
	root := *olderVersion.Schema
	root.Properties = maps.Clone(root.Properties)
	root.Properties["spec"] = &spec
	olderVersion.Schema = &root
	older, err := NewKind([]Version{olderVersion, versionOf[cron2](t)}, []*Step{NewStep(cronToV2, cronToV1)})
	if err != nil {
		t.Fatal(err)
	}
	h := cronObject("v1", `"schedule":"@daily","policy":"Forbid"`+cronTemplate)
	stored := convertText(t, newer, h, "v2")
	read := convertText(t, older, string(stored.Object), "v1")
	edited := strings.Replace(string(read.Object), `"@daily"`, `"7 * * * *"`, 1)
	for _, k := range []*Kind{newer, older} {
		stored := convertText(t, k, edited, "v2")
		home := convertText(t, newer, string(stored.Object), "v1")
		if home.Spec["policy"] != "Forbid" || home.Spec["schedule"] != "7 * * * *" || home.HasKept {
			t.Errorf("stored %s\nhome %s", stored.Object, home.Object)
		}
	}
}

// The checker finds no problem in good functions, and lists the fields that only the annotation keeps.
func TestCheckLaws(t *testing.T) {
	t.Parallel()
	objects := [][]byte{
		[]byte(cronObject("v1", `"schedule":"@daily","policy":"Forbid","ports":[{"name":"a","port":1},{"name":"b","port":1,"public":true}],"notes":{"x":{"text":"t","author":"jane"}}`+cronTemplate)),
		[]byte(cronObject("v2", `"schedule":{"minute":"5","hour":"*","dayOfMonth":"*","month":"*","dayOfWeek":"*"},"suspend":true,"zone":"UTC"`+cronTemplate)),
		[]byte(`{"apiVersion":"batch.example.com/v1","kind":"CronJob","metadata":{},"spec":{"policy":"Forbid"}}`),
		[]byte(cronObject("v1", `"schedule":"panic"`+cronTemplate)),
	}
	r := CheckLaws(cronKind(t), objects)
	if len(r.Problems) > 0 {
		t.Errorf("problems: %s", strings.Join(r.Problems, "\n"))
	}
	if r.Edits < 20 || len(r.Incomplete) != 1 || !strings.Contains(r.Incomplete[0], "v1 to v2") {
		t.Errorf("%d edits, incomplete %q", r.Edits, r.Incomplete)
	}
	want := map[string][]string{
		"v1 to v2": {".spec.notes[*].author", ".spec.policy", ".spec.ports[*].port", ".spec.ports[*].public", ".spec.schedule"}, "v2 to v1": {".spec.zone"},
	}
	for step, paths := range want {
		if got := r.Kept[step]; !slices.Equal(got, paths) {
			t.Errorf("%s keeps %q, want %q", step, got, paths)
		}
	}
	// A function whose result depends on something else breaks a law.
	calls := 0
	k, err := NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t)}, []*Step{NewStep(func(a *cron1, b *cron2) {
		cronToV2(a, b)
		calls++
		b.Spec.Zone = fmt.Sprint(calls)
	}, cronToV1)})
	if err != nil {
		t.Fatal(err)
	}
	if r := CheckLaws(k, objects[:1]); len(r.Problems) == 0 {
		t.Error("no problem is found in a function with a counter")
	}
	// A result that does not fit the schema is a problem.
	k, err = NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t)}, []*Step{NewStep(cronToV2, func(b *cron2, a *cron1) {
		cronToV1(b, a)
		a.Spec.Policy = "Sometimes"
	})})
	if err != nil {
		t.Fatal(err)
	}
	if r := CheckLaws(k, objects[1:2]); len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "does not fit the schema of v1 at .spec.policy") {
		t.Errorf("%q", r.Problems)
	}
}

// FuzzAnnotation converts objects with any text as annotation.
func FuzzAnnotation(f *testing.F) {
	k := cronKind(f)
	f.Add(`{"original":"@daily","path":["spec","schedule"],"returned":"5 * * * *","to":"v2"}`, `{"from":2,"original":{"name":"b"},"path":["spec","ports",{"name":"b"}],"to":"v2"}`)
	f.Add(`{"from":3,"original":2,"path":["spec","ports",{"name":"b"},"port"],"to":"v2"}`, `{"order":true,"original":[{"name":"b"},{"name":"a"}],"path":["spec","ports"],"returned":[{"name":"a"}],"to":"v2"}`)
	f.Add(`{"left":true,"original":{"a":1},"path":["spec","limits"],"to":"v2"}`, `{"path":["spec","ports",{"name":"a"},"port"],"returned":1,"to":"v2"}`)
	schema := k.checks["v1"]
	f.Fuzz(func(t *testing.T, a, b string) {
		text1, _ := kube.Marshal(a)
		text2, _ := kube.Marshal(b)
		object := strings.Replace(cronObject("v2", `"schedule":{"minute":"5","hour":"*","dayOfMonth":"*","month":"*","dayOfWeek":"*"},"suspend":false,"ports":[{"name":"a","number":1}]`+cronTemplate),
			`"uid"`, `"annotations":{"`+Prefix+`v1.a":`+string(text1)+`,"`+Prefix+`v1.b":`+string(text2)+`},"uid"`, 1)
		home := convertText(t, k, object, "v1")
		o, err := parseObject(home.Object)
		if err != nil {
			t.Fatal(err)
		}
		if path := schema.misfit(schema.root, o.content, ""); path != "" {
			t.Fatalf("%s does not fit: %s", path, home.Object)
		}
		there := convertText(t, k, string(home.Object), "v2")
		if back := convertText(t, k, string(there.Object), "v1"); !jsontree.Equal(jsontree.Parse(back.Object).(map[string]any)["spec"], jsontree.Parse(home.Object).(map[string]any)["spec"]) {
			t.Fatalf("home %s\nback %s", home.Object, back.Object)
		}
	})
}

// The example of the package documentation is right.
func TestExampleOfTheDocumentation(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	h := cronObject("v1", `"schedule":"@hourly","policy":"Forbid"`+cronTemplate)
	there := convertText(t, k, h, "v2")
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for key, text := range there.Metadata.Annotations {
		if line := "//	" + key + "  " + text + "\n"; !strings.Contains(string(doc), line) {
			t.Errorf("doc.go lacks the line %s", line)
		}
		kept++
	}
	home := convertText(t, k, strings.Replace(string(there.Object), `"minute":"0"`, `"minute":"7"`, 1), "v1")
	if want := canonical(t, strings.Replace(h, "@hourly", "7 * * * *", 1)); kept != 2 || string(home.Object) != want {
		t.Errorf("home %s\nwant %s", home.Object, want)
	}
}

// incompleteMark returns the mark of an object with these annotations. It reports whether the object has one. A mark
// that is no JSON of a Mark has no original version.
func incompleteMark(annotations map[string]string) (Mark, bool) {
	text, isMarked := annotations[Incomplete]
	var m Mark
	if !isMarked || kube.Unmarshal([]byte(text), &m) != nil {
		m = Mark{}
	}
	return m, isMarked
}
