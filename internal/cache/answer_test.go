package cache

import (
	"testing"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The answers of deletes after which the object is still there, and the other answers.
func TestEntryOfAnswers(t *testing.T) {
	t.Parallel()
	c := New(nil)
	for _, test := range []struct {
		verb   wire.Verb
		plural string
		answer string
		want   overlay.Kind
	}{
		{wire.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","deletionGracePeriodSeconds":30}}`, overlay.Value},
		{wire.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","deletionGracePeriodSeconds":0}}`, overlay.Tombstone},
		{wire.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5"}}`, overlay.Tombstone},
		{wire.VerbDelete, "services", `{"kind":"Service","metadata":{"uid":"u","resourceVersion":"5"}}`, overlay.Tombstone},
		{wire.VerbDelete, "namespaces", `{"kind":"Namespace","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"},"spec":{"finalizers":["kubernetes"]}}`, overlay.Value},
		{wire.VerbDelete, "namespaces", `{"kind":"Namespace","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"},"spec":{}}`, overlay.Tombstone},
		{wire.VerbDelete, "pods", `{"kind":"Status","details":{"uid":"u"}}`, overlay.Tombstone},
		// A delete that is repeated, and meets nothing, has this answer. The answer names no
		// object.
		{wire.VerbDelete, "pods", `{"kind":"Status","status":"Success"}`, overlay.UnknownState},
		{wire.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","finalizers":["f"]}}`, overlay.Value},
		{wire.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"}}`, overlay.Tombstone},
		{wire.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"abc"}}`, overlay.UnknownState},
		{wire.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u"}}`, overlay.UnknownState},
		{wire.VerbPatch, "pods", `{`, overlay.UnknownState},
	} {
		r := &wire.Request{Verb: test.verb, Resource: pods.Resource, Namespace: "ns", Name: "a"}
		r.Resource.Plural = test.plural
		var answer ident.Answer
		_ = kube.Unmarshal([]byte(test.answer), &answer)
		if got := c.overlay.overlayEntryOf(r, overlay.KeyOf(r.Ref()), answer, []byte(test.answer)).Kind; got != test.want {
			t.Errorf("%s %s answered %s: %d, want %d", test.verb, test.plural, test.answer, got, test.want)
		}
	}
}
