package watch

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// errBadFrame ends a watch with a frame that no server should send. The same version may lead to
// the same frame again.
var errBadFrame = errors.New("the server sent what is no event")

// isMalformed reports whether err is due to the bytes of a watch, and not to its connection.
func isMalformed(err error) bool {
	_, ok := errors.AsType[*jsontext.SyntacticError](err)
	return ok && !errors.Is(err, io.ErrUnexpectedEOF)
}

// handleFrame publishes the changes of one event of the server.
func (f *follower) handleFrame(frame kube.Frame) error {
	switch frame.Type {
	case "ADDED", "MODIFIED":
		return f.put(frame.Object)
	case "DELETED":
		return f.remove(frame.Object)
	case "BOOKMARK":
		return f.handleBookmark(frame.Object)
	case "ERROR":
		return f.stream.StatusError(frame.Object)
	default:
		return f.watchError(fmt.Errorf("%w: its type is %q", errBadFrame, frame.Type))
	}
}

func (f *follower) handleBookmark(object []byte) error {
	var bookmark struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := kube.Unmarshal(object, &bookmark); err != nil {
		return f.watchError(fmt.Errorf("%w: read a bookmark: %w", errBadFrame, err))
	}
	if !f.listing {
		f.bookmarked = true
		f.advance(bookmark.Metadata.ResourceVersion)
		return f.publish(Change{Type: ChangeBookmark, ResourceVersion: f.version})
	}
	if bookmark.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		return nil
	}
	if err := f.finishList(bookmark.Metadata.ResourceVersion); err != nil {
		return err
	}
	f.progressed = true
	return f.publishOpened()
}

// put publishes the changes that follow from the existence of object.
func (f *follower) put(object []byte) error {
	id, named, err := readIdentity(f.stream, object)
	f.endProbeAt(id.ResourceVersion)
	if err != nil {
		f.tracker.putUndecodable(id.Key, named)
		return f.publishError(err)
	}
	replaced, change := f.tracker.put(id.Key, ident.NewVersion(id.UID, id.ResourceVersion))
	if replaced.key.Name != "" {
		if err := f.publishMissing(replaced); err != nil {
			return err
		}
	}
	if change != 0 {
		id.Type, id.Object = change, object
		if err := f.publish(id); err != nil {
			return err
		}
	}
	f.advance(id.ResourceVersion)
	return nil
}

// remove publishes the change that follows from the deletion of object.
func (f *follower) remove(object []byte) error {
	id, _, err := readIdentity(f.stream, object)
	f.endProbeAt(id.ResourceVersion)
	if err != nil {
		return f.publishError(err)
	}
	if f.tracker.remove(id.Key, ident.NewVersion(id.UID, id.ResourceVersion), f.listing) {
		id.Type, id.Object = ChangeDeleted, object
		if err := f.publish(id); err != nil {
			return err
		}
	}
	f.advance(id.ResourceVersion)
	return nil
}

// advance moves the version to watch from, which never goes back: a server that repeats itself
// makes no progress.
func (f *follower) advance(version string) {
	if f.listing || version == "" || version == f.version || ident.IsNewer(f.version, version) {
		return
	}
	f.version, f.reached = version, version
	f.tracker.advance(version)
	f.progressed = true
	f.backoff.recordProgress()
}
