package cache

import (
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Promise 17: a term list shows the versions of all objects, in each of the two encodings in which servers answer.
func TestVersionsOfATermList(t *testing.T) {
	t.Parallel()
	list := metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{ResourceVersion: "41", Continue: "next"},
		Items: []metav1.PartialObjectMetadata{
			{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u1", ResourceVersion: "30", Generation: 2}},
			{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u2", ResourceVersion: "38", Labels: map[string]string{"x": "y"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{}}`)}}}}},
		},
	}
	inJSON, err := json.Marshal(&list)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "PartialObjectMetadataList"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	inProtobuf := append([]byte(protobufMagic), envelope...)
	want := []listedVersion{{"u1", "30"}, {"u2", "38"}}
	for name, page := range map[string][]byte{"JSON": inJSON, "protobuf": inProtobuf} {
		versions, next, err := appendVersions(nil, page)
		if err != nil || next != "next" || !slices.Equal(versions, want) {
			t.Errorf("%s: %v, next %q, %v", name, versions, next, err)
		}
		if _, _, err := appendVersions(nil, page[:len(page)-3]); err == nil {
			t.Errorf("%s: a page that is cut off is read without an error", name)
		}
	}
}
