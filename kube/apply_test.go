package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube/wire"
)

// The stringData of a Secret is sent as data, whatever the Go type of the Secret is. Otherwise the server would not remove a
// key that a later apply leaves out.
func TestStringDataIsSentAsData(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"data":{"a":"MQ=="}`: `"data":{"a":"MQ=="}`,
		`"data":{"a":"MQ==","c":null},"stringData":{"a":"2","b":"é\u0000"}`: `"data":{"a":"Mg==","b":"w6kA","c":null}`,
		`"data":null,"stringData":{"b":"3"}`:                                `"data":{"b":"Mw=="}`,
		`"stringData":{}`:                                                   ``,
		`"data":{},"stringData":{}`:                                         `"data":{}`,
	} {
		secret := &unstructured.Unstructured{}
		text := strings.TrimSuffix(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"n","namespace":"ns"},`+members, ",") + `}`
		if err := secret.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		resource, err := ResourceOf[corev1.Secret]()
		if err != nil {
			t.Fatal(err)
		}
		r, err := applier{target: target{resource: resource}, pruner: newPruner()}.request(secret, nil)
		if err != nil {
			t.Errorf("%s: %v", members, err)
			continue
		}
		var got map[string]any
		if err := Unmarshal(r.Body, &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "apiVersion")
		delete(got, "kind")
		delete(got, "metadata")
		if sent, _ := Marshal(got); string(sent) != "{"+want+"}" {
			t.Errorf("%s is sent as %s, want %s", members, sent, want)
		}
	}
	wrong := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}, "stringData": map[string]any{"a": int64(1)}}}
	_, err := applier{target: target{resource: wire.Resource{Plural: "secrets"}}, pruner: newPruner()}.request(wrong, nil)
	if err == nil || !strings.Contains(err.Error(), "stringData") {
		t.Errorf("a number in stringData is no error that names the field: %v", err)
	}
}
