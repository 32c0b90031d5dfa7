package contested_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/feature/contested"
)

func TestSetBack(t *testing.T) {
	t.Parallel()
	// managed returns an object with one entry in managedFields for each pair of a manager and its fields.
	managed := func(rest string, entries ...string) string {
		text := ""
		for i := 0; i < len(entries); i += 2 {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprintf(`{"manager":%q,"operation":"Update","fieldsType":"FieldsV1","fieldsV1":%s}`, entries[i], entries[i+1])
		}
		return `{"metadata":{"resourceVersion":"7","labels":{"app.kubernetes.io/name":"a"},"managedFields":[` + text + `]},` + rest + `}`
	}
	const containers = `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}`
	for name, test := range map[string]struct {
		applied, before, after string
		want                   []contested.Field
	}{
		"a number": {
			`{"spec":{"replicas":2}}`,
			managed(`"spec":{"replicas":5}`, "us", `{"f:spec":{"f:paused":{}}}`, "scaler", `{"f:spec":{"f:replicas":{}}}`),
			`{"metadata":{},"spec":{"replicas":2}}`,
			[]contested.Field{{Path: ".spec.replicas", Manager: "scaler"}},
		},
		"a field of others, which the apply leaves alone": {
			`{"spec":{"replicas":2}}`, managed(`"spec":{"replicas":2,"paused":true}`, "them", `{"f:spec":{"f:paused":{}}}`),
			managed(`"spec":{"replicas":2,"paused":false}`), nil,
		},
		"the version of the object": {
			`{"metadata":{"resourceVersion":"6","uid":"u"},"spec":{"replicas":2}}`, managed(`"spec":{"replicas":2}`),
			`{"metadata":{"resourceVersion":"8","uid":"u"},"spec":{"replicas":2}}`, nil,
		},
		"a field that somebody has removed": {
			`{"metadata":{"labels":{"example.com/team":"a"}}}`, managed(`"spec":{}`),
			`{"metadata":{"labels":{"app.kubernetes.io/name":"a","example.com/team":"a"}}}`,
			[]contested.Field{{Path: `.metadata.labels["example.com/team"]`}},
		},
		"a field that the server drops": {
			`{"spec":{"unknown":1}}`, managed(`"spec":{}`), `{"metadata":{},"spec":{}}`, nil,
		},
		"an item of a list with keys, which stands elsewhere now": {
			`{"spec":{"containers":[{"name":"web","image":"a"}]}}`,
			managed(`"spec":{"containers":[{"name":"proxy","image":"p"},{"name":"web","image":"b"}]}`, "mirror", containers),
			`{"metadata":{},"spec":{"containers":[{"name":"web","image":"a"},{"name":"proxy","image":"p"}]}}`,
			[]contested.Field{{Path: ".spec.containers[web].image", Manager: "mirror"}},
		},
		"an item that somebody has removed": {
			`{"spec":{"containers":[{"name":"web","image":"a"}]}}`,
			managed(`"spec":{"containers":[{"name":"proxy","image":"p"}]}`, "them",
				`{"f:spec":{"f:containers":{"k:{\"name\":\"proxy\"}":{".":{},"f:name":{}}}}}`),
			managed(`"spec":{"containers":[{"name":"proxy","image":"p"},{"name":"web","image":"a"}]}`, "us", containers),
			[]contested.Field{{Path: ".spec.containers[web]"}},
		},
		"a list without keys": {
			`{"spec":{"args":["a"]}}`, managed(`"spec":{"args":["b"]}`, "them", `{"f:spec":{"f:args":{}}}`),
			`{"metadata":{},"spec":{"args":["a"]}}`, []contested.Field{{Path: ".spec.args", Manager: "them"}},
		},
		"an object that is owned as a whole": {
			`{"spec":{"selector":{"a":"1"}}}`, managed(`"spec":{"selector":{"a":"2","b":"3"}}`, "them", `{"f:spec":{"f:selector":{}}}`),
			`{"metadata":{},"spec":{"selector":{"a":"1"}}}`, []contested.Field{{Path: ".spec.selector", Manager: "them"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := contested.SetBack([]byte(test.applied), []byte(test.before), []byte(test.after), "us")
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("the fields are %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestSetBackOfBrokenJSON(t *testing.T) {
	t.Parallel()
	if _, err := contested.SetBack([]byte(`{"spec":`), []byte(`{}`), []byte(`{}`), "us"); err == nil {
		t.Error("there is no error")
	}
}
