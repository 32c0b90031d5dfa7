package adoption

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// FuzzHasController compares the owner that is read from an apply with what a decoder finds. An owner that was
// overlooked would let a foreign object be taken over.
func FuzzHasController(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"ownerReferences":[{"uid":"u","controller":true}]}}`, `{"metadata":{"ownerReferences":[{"uid":"x"},{"controller":true,"uid":"u"}]}}`, `{"metadata":{"ownerReferences":[{"uid":"u","controller":false}]}}`,
		`{"spec":{"ownerReferences":[{"uid":"u","controller":true}]},"metadata":{"name":"u"}}`, `{"metadata":{"ownerReferences":[]}}`, `{"metadata":{"ownerReferences":{}}}`, `{"metadata":{"ownerReferences":[{"uid":"u","controller":true}`, `{}`, ``,
	} {
		f.Add([]byte(text), "u")
	}
	f.Fuzz(func(t *testing.T, body []byte, owner string) {
		got := hasController(body, types.UID(owner))
		var object struct {
			Metadata struct {
				OwnerReferences []struct {
					UID        string `json:"uid"`
					Controller bool   `json:"controller"`
				} `json:"ownerReferences"`
			} `json:"metadata"`
		}
		if !isPlain(body, "metadata", "ownerReferences") || kube.Unmarshal(body, &object) != nil {
			return
		}
		want := false
		for _, o := range object.Metadata.OwnerReferences {
			want = want || owner != "" && o.Controller && o.UID == owner
		}
		if got != want {
			t.Errorf("%q has the controller %q: %t, not %t", body, owner, got, want)
		}
	})
}

// FuzzWithMetadata checks that a member added to the metadata of an object changes nothing else.
func FuzzWithMetadata(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{}}`, `{"kind":"K","metadata":{ "name":"a"},"spec":{"metadata":{}}}`, "{\"metadata\":{\n}}", `{"metadata":null}`, `{"metadata":[]}`, `{}`, `[]`, ``, `{"a":1,"metadata":{"name":"a"}`,
	} {
		f.Add([]byte(text), "value")
	}
	f.Fuzz(func(t *testing.T, body []byte, value string) {
		got, err := jsonscan.WithMetadata(body, "uid", value)
		var want map[string]any
		if !isPlain(body, "metadata", "uid") || !utf8.ValidString(value) || json.Unmarshal(body, &want) != nil || want == nil {
			return
		}
		if metadata, ok := want["metadata"].(map[string]any); ok {
			if _, has := metadata["uid"]; has {
				return // the author's own precondition is never replaced
			}
			metadata["uid"] = value
		}
		var object map[string]any
		if err != nil || json.Unmarshal(got, &object) != nil || !reflect.DeepEqual(object, want) {
			t.Errorf("%q became %q, with the error %v", body, got, err)
		}
	})
}

// isPlain reports whether an object is JSON without escapes and nulls that has none of the names more than once.
func isPlain(object []byte, names ...string) bool {
	for _, name := range names {
		if bytes.Count(object, []byte(`"`+name+`"`)) > 1 {
			return false
		}
	}
	return json.Valid(object) && utf8.Valid(object) && !bytes.Contains(object, []byte(`\`)) && !bytes.Contains(object, []byte("null"))
}
