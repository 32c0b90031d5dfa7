package replay

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/yaretest"
)

// The objects of the replay server have the bytes that a real API server writes, but for times,
// uids and resource versions.
func TestObjectsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	kind, err := kube.TypeOf[workload.Shop]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, kind)
	client := cluster.Client(t)
	for _, name := range workload.Namespaces() {
		if _, err := kube.Everywhere[corev1.Namespace](client).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	const n = 40
	for i := range n {
		if err := workload.Create(t.Context(), client, i); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := client.Do(t.Context(), &wire.Request{Verb: wire.VerbList, Resource: kube.Everywhere[workload.Shop](client).Resource()})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		t.Fatal(err)
	}
	store := NewStore(n)
	if len(list.Items) != n {
		t.Fatalf("the server has %d objects", len(list.Items))
	}
	for k, item := range list.Items {
		if got, want := normalize(store.object(k)), normalize(item); !bytes.Equal(got, want) {
			t.Errorf("the object is\n%s\nand the server writes\n%s", got, want)
		}
	}
}

// normalize returns an object without what differs from one creation to the next.
func normalize(object []byte) []byte {
	for _, pattern := range []string{`"uid":"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`, `"resourceVersion":"[0-9]+"`, `"[0-9-]{10}T[0-9:]{8}Z"`} {
		object = regexp.MustCompile(pattern).ReplaceAll(object, []byte(`""`))
	}
	return object
}
