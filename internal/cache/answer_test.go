package cache

import (
	"testing"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// The answers of deletes after which the object is still there, and the other answers.
func TestEntryOfAnswers(t *testing.T) {
	t.Parallel()
	c := New(nil)
	for _, test := range []struct {
		verb   kube.Verb
		plural string
		answer string
		want   overlay.Kind
	}{
		{kube.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","deletionGracePeriodSeconds":30}}`, overlay.Value},
		{kube.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","deletionGracePeriodSeconds":0}}`, overlay.Tombstone},
		{kube.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5"}}`, overlay.Tombstone},
		{kube.VerbDelete, "services", `{"kind":"Service","metadata":{"uid":"u","resourceVersion":"5"}}`, overlay.Tombstone},
		{kube.VerbDelete, "namespaces", `{"kind":"Namespace","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"},"spec":{"finalizers":["kubernetes"]}}`, overlay.Value},
		{kube.VerbDelete, "namespaces", `{"kind":"Namespace","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"},"spec":{}}`, overlay.Tombstone},
		{kube.VerbDelete, "pods", `{"kind":"Status","details":{"uid":"u"}}`, overlay.Tombstone},
		// A delete that is repeated, and meets nothing, has this answer. The answer names no
		// object.
		{kube.VerbDelete, "pods", `{"kind":"Status","status":"Success"}`, overlay.Doubt},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","finalizers":["f"]}}`, overlay.Value},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"}}`, overlay.Tombstone},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"abc"}}`, overlay.Doubt},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u"}}`, overlay.Doubt},
		{kube.VerbPatch, "pods", `{`, overlay.Doubt},
	} {
		r := &kube.Request{Verb: test.verb, Resource: pods.Resource, Namespace: "ns", Name: "a"}
		r.Resource.Plural = test.plural
		var answer ident.Answer
		_ = kube.Unmarshal([]byte(test.answer), &answer)
		if got := c.overlay.entryOf(r, overlay.KeyOf(r.Ref()), answer, []byte(test.answer)).Kind; got != test.want {
			t.Errorf("%s %s answered %s: %d, want %d", test.verb, test.plural, test.answer, got, test.want)
		}
	}
}
