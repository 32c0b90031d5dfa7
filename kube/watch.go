package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/yare-go/yare/kube/wire"
)

// WatchEvent is one event of a single watch request: ADDED, MODIFIED, DELETED or BOOKMARK. The
// Object of a bookmark has only metadata. The Object of a deletion has only metadata if the server
// sends no more.
type WatchEvent[T any] struct {
	Type   string
	Object *T
}

// watchFrames sends one watch request from resourceVersion on, and returns the events. The status of an
// ERROR event comes as an error. The sequence ends with the answer.
func watchFrames(
	ctx context.Context, c *Client, t target, resourceVersion string, selectors []Selector,
) iter.Seq2[wire.Frame, error] {
	return func(yield func(wire.Frame, error) bool) {
		streams, err := t.streams(c, selectors)
		if err == nil && len(streams) > 1 {
			err = fmt.Errorf("watch %s: one request cannot watch several namespaces", t.resource)
		}
		if err != nil {
			yield(wire.Frame{}, err)
			return
		}
		s := streams[0]
		response, err := c.Do(ctx, s.Request(wire.VerbWatch,
			"resourceVersion", resourceVersion, "allowWatchBookmarks", "true"))
		if err != nil {
			yield(wire.Frame{}, err)
			return
		}
		if response.BodyReader == nil {
			e := wire.NewError(s.Request(wire.VerbWatch))
			e.Err, e.Permanent = errors.New("the handler answered a watch without a stream"), true
			yield(wire.Frame{}, e)
			return
		}
		defer response.BodyReader.Close()
		for frame, err := range wire.Frames(response.BodyReader) {
			if err != nil {
				e := wire.NewError(s.Request(wire.VerbWatch))
				e.Err = err
				err = e
			} else if frame.Type == "ERROR" {
				err = s.StatusError(frame.Object)
			}
			if !yield(frame, err) {
				return
			}
		}
	}
}
