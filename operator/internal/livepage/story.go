package livepage

import (
	"context"

	"github.com/yare-go/yare/kube/wire"
)

// maxStory bounds the steps of a story.
const maxStory = 100

// A story is what has happened to one object: its changes, and the reconciles that are about it.
type story struct {
	Object objectName
	// State is the object as the cache has it. It is nil if the cache does not have the object.
	State *shownObject
	// Steps are the newest steps, the newest one first. Each step is a change or a reconcile.
	Steps []step
}

// A step is a change or a reconcile. The other one is nil.
type step struct {
	Change    *change
	Reconcile *reconcile
}

// storyOf returns the story of an object.
func storyOf(ctx context.Context, s *Sources, h *history, o objectName) *story {
	found := &story{Object: o}
	streams := s.Streams()
	for i := range streams {
		stream := &streams[i].Stream
		if stream.Resource.Kind != o.Kind || isConfidential(&stream.Resource, "") || stream.Representation != wire.Full {
			continue
		}
		response, err := s.Cached.Do(ctx, &wire.Request{Verb: wire.VerbGet, Resource: stream.Resource, Namespace: o.Namespace, Name: o.Name})
		if err == nil {
			found.State = decodeObject(response.Body)
			break
		}
	}
	reconciles, _, _ := h.reconcilesBetween(0, 0, maxStory, func(r *reconcile) bool { return r.isAbout(o) })
	changes := h.changesOf(o)
	for len(found.Steps) < maxStory {
		switch isReconcile := len(reconciles) > 0; {
		case isReconcile && (len(changes) == 0 || reconciles[0].Ended.After(changes[0].At)):
			found.Steps = append(found.Steps, step{Reconcile: reconciles[0]})
			reconciles = reconciles[1:]
		case len(changes) > 0:
			found.Steps = append(found.Steps, step{Change: changes[0]})
			changes = changes[1:]
		default:
			return found
		}
	}
	return found
}
