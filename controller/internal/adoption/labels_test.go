package adoption

import (
	"errors"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A child by label that belongs to another owner is taken over only if that owner is gone, and if the author
// says so or a backup has changed the uid of the owner.
func TestOwnerLabelOfAnotherOwner(t *testing.T) {
	t.Parallel()
	const label = "example.com/owner"
	created := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	older, newer := metav1.NewTime(created.Add(-time.Hour)), metav1.NewTime(created.Add(time.Hour))
	writtenAt := func(at *metav1.Time) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "us", Time: at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	}
	for name, test := range map[string]struct {
		uid       string
		existence Existence
		adopt     bool
		fields    []metav1.ManagedFieldsEntry
		isRefused bool
	}{
		"its own":                                   {uid: "1"},
		"the owner exists":                          {uid: "2", existence: Exists, fields: writtenAt(&newer), isRefused: true},
		"the owner exists, with Adopt":              {uid: "2", existence: Exists, adopt: true, isRefused: true},
		"the owner is gone":                         {uid: "2", existence: Gone, fields: writtenAt(&newer), isRefused: true},
		"the owner is gone, with Adopt":             {uid: "2", existence: Gone, adopt: true},
		"the owner is gone, from a backup":          {uid: "2", existence: Gone, fields: writtenAt(&older)},
		"somebody else's, from a backup":            {uid: "2", existence: Gone, isRefused: true},
		"the owner is not known":                    {uid: "2", fields: writtenAt(&newer), isRefused: true},
		"the owner is not known, from a backup":     {uid: "2", fields: writtenAt(&older), isRefused: true},
		"the owner is not known, with Adopt":        {uid: "2", adopt: true},
		"no label, and fields of the field manager": {fields: writtenAt(&newer)},
		"no label, and no such fields":              {isRefused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewGuard(nil, func(_ string, uid types.UID) Existence {
				if uid != "2" {
					t.Errorf("asked for the uid %q", uid)
				}
				return test.existence
			}, nil, []string{label})
			child := &metav1.ObjectMeta{Name: "shared", UID: "9", CreationTimestamp: created, ManagedFields: test.fields}
			if test.uid != "" {
				child.Labels = map[string]string{label: test.uid}
			}
			apply := &wire.Request{Verb: wire.VerbPatch, Name: "shared", Adopt: test.adopt, Query: url.Values{"fieldManager": {"us"}}}
			d, err := g.decideByMetadata(child, apply, wire.Ref{Name: "eden", UID: "1"})
			if errors.Is(err, kube.ErrForeignChild) != test.isRefused || !test.isRefused && (err != nil || d.uid != "9") {
				t.Errorf("the decision is %+v, %v", d, err)
			}
		})
	}
}
