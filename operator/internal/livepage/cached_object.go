package livepage

import (
	"context"

	"github.com/yare-go/yare/kube/wire"
)

// cachedObject returns an object as the cache has it. It returns nil if the cache does not have the object, or if the content
// of the object is not shown.
func cachedObject(ctx context.Context, s *Sources, o objectName) *shownObject {
	streams := s.Streams()
	for i := range streams {
		stream := &streams[i].Stream
		if stream.Resource.Kind != o.Kind || isConfidential(&stream.Resource, "") || stream.Representation != wire.Full {
			continue
		}
		response, err := s.Cached.Do(ctx, &wire.Request{Verb: wire.VerbGet, Resource: stream.Resource, Namespace: o.Namespace, Name: o.Name})
		if err == nil {
			return decodeObject(response.Body)
		}
	}
	return nil
}
