package replay

import (
	"encoding/json"
	"testing"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Programs that elect a leader read, create and replace their Lease.
func TestLeases(t *testing.T) {
	t.Parallel()
	client := newClient(t, 1)
	do := func(verb wire.Verb, name, body string) (*wire.Response, error) {
		return client.Do(t.Context(), &wire.Request{
			Verb: verb, Resource: lease.Resource(), Namespace: "default", Name: name, Body: []byte(body), Live: true,
		})
	}
	_, err := do(wire.VerbGet, "a", "")
	if !kube.IsNotFound(err) {
		t.Fatal(err)
	}
	const head = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a","namespace":"default"`
	if _, err := do(wire.VerbCreate, "", head+`},"spec":{"holderIdentity":"x"}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := do(wire.VerbCreate, "", head+`},"spec":{"holderIdentity":"x"}}`); err == nil {
		t.Error("a Lease was created twice")
	}
	read := func() (object struct {
		Metadata struct{ ResourceVersion string }
		Spec     struct{ HolderIdentity string }
	}) {
		t.Helper()
		r, err := do(wire.VerbGet, "a", "")
		if err == nil {
			err = json.Unmarshal(r.Body, &object)
		}
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	first := read().Metadata.ResourceVersion
	update := func(holder string) error {
		_, err := do(wire.VerbUpdate, "a", head+`,"resourceVersion":"`+first+`"},"spec":{"holderIdentity":"`+holder+`"}}`)
		return err
	}
	if err := update("y"); err != nil {
		t.Fatal(err)
	}
	if err := update("z"); !kube.IsConflict(err) {
		t.Errorf("an update of a former version: %v", err)
	}
	if got := read().Spec.HolderIdentity; got != "y" {
		t.Errorf("the holder is %q", got)
	}
}
