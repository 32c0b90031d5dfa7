package follow

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// FuzzIdentity compares the identity that a stream reads from an object with the identity found by a
// decoder. An identity that was misread would be another object.
func FuzzIdentity(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"namespace":"ns","name":"a","uid":"u","resourceVersion":"7"},"spec":{"metadata":{"name":"b"}}}`, `{"spec":{"name":"b"},"metadata":{"labels":{"name":"b"},"name":"a"}}`,
		`{"metadata":{"name":null}}`, `{"metadata":{"name":7,"uid":"u"}}`, `{"metadata":{"namespace":"ns","name":"a","uid":[]}}`, `{"metadata":[]}`, `{"metadata":null}`, `{}`, `null`, `[]`, ``, `{"metadata":{"name":"a"`, `{"metadata":{"name":"\"\\"}}`, `{"metadata":{"\u006eame":"\u0061\ud800"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		id, err := readIdentity(wire.Stream{}, object, nil)
		for _, member := range id.metadata {
			if string(member.Name) == "managedFields" || !bytes.Contains(object, member.Value) {
				t.Errorf("%q: the metadata have a member %q: %q", object, member.Name, member.Value)
			}
		}
		if err == nil && (!id.isKeyKnown || id.key.Name == "") {
			t.Errorf("%q: an object without a name has the identity %+v", object, id)
		}
		var want struct {
			Metadata struct {
				Namespace       string    `json:"namespace"`
				Name            string    `json:"name"`
				UID             types.UID `json:"uid"`
				ResourceVersion string    `json:"resourceVersion"`
			} `json:"metadata"`
		}
		// An object with a repeated name is left out: it does not matter which of the members counts.
		if !jsontext.Value(object).IsValid(jsontext.AllowInvalidUTF8(true)) || kube.Unmarshal(object, &want) != nil {
			return
		}
		m := want.Metadata
		if m.Name == "" {
			if err == nil {
				t.Errorf("%q: there is no name, and no error", object)
			}
			return
		}
		if err != nil || id.key.Namespace != m.Namespace || id.key.Name != m.Name || id.uid != m.UID || id.resourceVersion != m.ResourceVersion {
			t.Errorf("%q: the identity is %+v, with the error %v", object, id, err)
		}
	})
}
