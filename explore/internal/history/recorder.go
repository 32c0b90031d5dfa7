package history

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Recorder follows all objects in the namespaces of an API server, for any number of recordings. Its
// methods are safe for concurrent use.
type Recorder struct {
	client  *kube.Client
	streams []*stream
	cancel  context.CancelFunc
	// group counts the goroutines that follow the streams.
	group sync.WaitGroup
	// ended is closed when the streams are not followed any more.
	ended <-chan struct{}
	// secretKey is the random key of the hashes that stand for values of Secrets. It is written nowhere. Without the
	// key, a reader of a report could find a short password by hashing all short passwords.
	secretKey []byte

	mu         sync.Mutex // guards what follows, the recordings, and the mutable fields of the streams
	recordings []*Recording
	// changed is closed, and replaced, whenever a stream has changed.
	changed chan struct{}
}

// stream is the objects of one resource in all namespaces.
type stream struct {
	wire.Stream
	api kube.API[unstructured.Unstructured]
	// newest holds the newest version of each object that exists.
	newest map[types.UID]Version
	// deleted holds the objects whose deletion has come.
	deleted map[types.UID]bool
	// isUsed is true once a recording has had a version of the stream, or a caller of CatchUp has named
	// its resource. CatchUp looks at no other streams.
	isUsed bool
	// isListed is true once the stream has been complete.
	isListed bool
	// failure is the latest failure of the stream. It is nil while its watch is open.
	failure error
	// unreadable are the objects that could not be decoded.
	unreadable []error
}

// NewRecorder begins to follow the objects of the resources, or, without any, of all [Resources]. It
// returns when it has all objects that exist, and follows them until [Recorder.Close], or until ctx
// ends. config is the configuration of an administrator.
func NewRecorder(ctx context.Context, config *kube.Config, resources ...wire.Resource) (*Recorder, error) {
	// The server warns of deprecated kinds, which are recorded like all others.
	config = config.Clone()
	config.OnWarning = func(context.Context, *wire.Request, string) {}
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	return newRecorder(ctx, client, resources)
}

// newRecorder implements NewRecorder with a client.
func newRecorder(ctx context.Context, client *kube.Client, resources []wire.Resource) (*Recorder, error) {
	if len(resources) == 0 {
		var err error
		if resources, err = Resources(ctx, client); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Recorder{
		client: client, cancel: cancel, ended: ctx.Done(), changed: make(chan struct{}), secretKey: []byte(rand.Text()),
	}
	for _, resource := range resources {
		s := &stream{
			Stream: wire.Stream{Resource: resource, Representation: wire.Full, IfServed: true},
			api:    kube.Dynamic(client, resource, ""), newest: make(map[types.UID]Version), deleted: make(map[types.UID]bool),
		}
		r.streams = append(r.streams, s)
		r.group.Go(func() { r.follow(ctx, s) })
	}
	for _, s := range r.streams {
		if err := r.wait(ctx, s, func() bool { return s.isListed }); err != nil {
			r.Close()
			return nil, fmt.Errorf("record %s: %w", s.Stream, err)
		}
	}
	return r, nil
}

// Close ends all recordings. What was recorded can still be read.
func (r *Recorder) Close() {
	r.cancel()
	r.group.Wait()
}

// Record begins a recording of some namespaces. A namespace that does not exist yet is recorded
// completely. The first versions of another namespace are the versions of the objects that exist.
func (r *Recorder) Record(namespaces ...string) *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	recording := &Recording{recorder: r, namespaces: slices.Clone(namespaces), step: -1, lastChange: time.Now()}
	for _, s := range r.streams {
		for _, v := range slices.SortedFunc(maps.Values(s.newest), compareVersions) {
			if slices.Contains(namespaces, v.Namespace) && !isQuota(v) {
				v.At, v.Step = recording.lastChange, recording.step
				recording.versions, s.isUsed = append(recording.versions, v), true
			}
		}
	}
	r.recordings = append(r.recordings, recording)
	return recording
}

// follow follows a stream until ctx ends.
func (r *Recorder) follow(ctx context.Context, s *stream) {
	for change, err := range follow.Changes(ctx, r.client, s.Stream) {
		r.recordChange(s, change, err)
	}
}

// recordChange records a change of a stream, or a failure.
func (r *Recorder) recordChange(s *stream, change follow.Change, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		s.recordErrorLocked(err)
	case change.Type == follow.ChangeWatchOpened:
		s.failure = nil
	case change.Type == follow.ChangeListStarted && s.isListed: // the versions between two lists are lost
		for _, each := range r.recordings {
			each.addGapLocked(s.Resource.String())
		}
	case change.Type == follow.ChangeListed:
		s.isListed = true
	case change.Type == follow.ChangeAdded, change.Type == follow.ChangeModified, change.Type == follow.ChangeDeleted:
		r.addVersionLocked(s, change)
	default:
		return
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (s *stream) recordErrorLocked(err error) {
	if _, ok := errors.AsType[*wire.DecodeError](err); ok {
		s.unreadable = append(s.unreadable, err)
	} else {
		s.failure = err
	}
}

// addVersionLocked adds the version that a change brings to the stream, and to the recordings of its
// namespace.
func (r *Recorder) addVersionLocked(s *stream, change follow.Change) {
	before := s.newest[change.UID]
	v := Version{
		Resource: s.Resource.String(), Namespace: change.Key.Namespace, Name: change.Key.Name, UID: change.UID,
		ResourceVersion: change.ResourceVersion, Object: before.Object, IsDeleted: change.Type == follow.ChangeDeleted,
		At: time.Now(),
	}
	recordings := r.recordingsLocked(v)
	if v.IsDeleted {
		delete(s.newest, v.UID)
		s.deleted[v.UID] = true
		if len(recordings) == 0 {
			return
		}
	}
	if change.Object != nil {
		object, err := s.api.Decode(change.Object)
		if err != nil {
			s.unreadable = append(s.unreadable, err)
			return
		}
		v.Object = object.Object
	}
	if !v.IsDeleted {
		if len(recordings) > 0 {
			v.Manager = writerOf(before, v)
		}
		s.newest[v.UID] = v
	}
	for _, each := range recordings {
		each.addVersionLocked(v)
		s.isUsed = true
	}
}

// recordingsLocked returns the recordings that a version belongs to.
func (r *Recorder) recordingsLocked(v Version) (all []*Recording) {
	for _, each := range r.recordings {
		if slices.Contains(each.namespaces, v.Namespace) && !isQuota(v) {
			all = append(all, each)
		}
	}
	return all
}

// wait waits until a condition on a stream holds, and calls the condition with the lock held. It
// returns an error when ctx ends, when the recorder is closed, or if an object of the stream cannot be decoded.
func (r *Recorder) wait(ctx context.Context, s *stream, holdsLocked func() bool) error {
	for {
		r.mu.Lock()
		holds, changed, failure, unreadable := holdsLocked(), r.changed, s.failure, errors.Join(s.unreadable...)
		r.mu.Unlock()
		if holds || unreadable != nil {
			return unreadable
		}
		select {
		case <-changed:
		case <-r.ended:
			return errors.New("the recorder is closed")
		case <-ctx.Done():
			if failure != nil {
				return fmt.Errorf("%w, after: %w", context.Cause(ctx), failure)
			}
			return context.Cause(ctx)
		}
	}
}

// catchUp waits until the streams have everything that the server has now in some namespaces. It waits for the streams
// of which a recording has had objects, and for the named resources. Leases and Events are left out.
func (r *Recorder) catchUp(ctx context.Context, namespaces, resources []string) error {
	var used []*stream
	r.mu.Lock()
	for _, s := range r.streams {
		name := s.Resource.String()
		if s.isUsed = s.isUsed || slices.Contains(resources, name); s.isUsed && !proxy.IsBackground(name) {
			used = append(used, s)
		}
	}
	r.mu.Unlock()
	errs := make([]error, len(used))
	var group sync.WaitGroup
	for i, s := range used {
		group.Go(func() {
			if err := r.catchUpStream(ctx, s, namespaces); err != nil {
				errs[i] = fmt.Errorf("catch up with %s: %w", s.Stream, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// catchUpStream lists the metadata of the objects without naming a version, so that the answers are not older than the
// call.
func (r *Recorder) catchUpStream(ctx context.Context, s *stream, namespaces []string) error {
	// Objects that are recorded only later may be missing from the list.
	r.mu.Lock()
	var existing []types.UID
	for uid, v := range s.newest {
		if slices.Contains(namespaces, v.Namespace) {
			existing = append(existing, uid)
		}
	}
	r.mu.Unlock()
	listed := make(map[types.UID]string)
	for _, namespace := range namespaces {
		list, err := kube.Metadata(r.client, s.Resource, namespace).List(ctx)
		if err != nil && !kube.IsNotFound(err) && !kube.IsNoResource(err) {
			return err
		}
		for _, object := range list {
			listed[object.UID] = object.ResourceVersion
		}
	}
	return r.wait(ctx, s, func() bool {
		for uid, version := range listed {
			if newest, exists := s.newest[uid]; !s.deleted[uid] && (!exists || ident.IsNewer(version, newest.ResourceVersion)) {
				return false
			}
		}
		return !slices.ContainsFunc(existing, func(uid types.UID) bool {
			_, exists := s.newest[uid]
			return exists && listed[uid] == ""
		})
	})
}
