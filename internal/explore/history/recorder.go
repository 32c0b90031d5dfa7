package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// Recorder records the versions of all objects in some namespaces. Its methods are safe for concurrent
// use.
type Recorder struct {
	client     *kube.Client
	namespaces []string
	streams    []*stream
	cancel     context.CancelFunc
	group      sync.WaitGroup // of the goroutines that follow the streams

	mu sync.Mutex // guards what follows, and the mutable fields of the streams
	// versions grows only at its end.
	versions   []Version
	step       int
	lastChange time.Time
	gaps       []string
	// changed is closed, and replaced, whenever a stream has changed.
	changed chan struct{}
}

// stream is one resource in one namespace.
type stream struct {
	kube.Stream
	api kube.API[unstructured.Unstructured]
	// newest holds the newest version of each object, also of those that are deleted.
	newest map[types.UID]Version
	// isListed is true once the stream has been complete.
	isListed bool
	// failure is the latest failure of the stream. It is nil while its watch is open.
	failure error
	// unreadable are the objects that could not be decoded.
	unreadable []error
}

// Record begins to record the objects in the namespaces: those of the resources, or, without any, of
// all [Resources]. It returns when the record is complete, and records until [Recorder.Close], or
// until ctx ends. config is that of an administrator.
func Record(ctx context.Context, config *kube.Config, namespaces []string, resources ...kube.Resource) (*Recorder, error) {
	// The server remarks on kinds that are deprecated, and all are recorded.
	client, err := kube.NewClient(config, kube.OnWarning(nil))
	if err != nil {
		return nil, err
	}
	return record(ctx, client, namespaces, resources)
}

// record does what Record does, with a client.
func record(ctx context.Context, client *kube.Client, namespaces []string, resources []kube.Resource) (*Recorder, error) {
	if len(namespaces) == 0 {
		return nil, errors.New("there is no namespace to record")
	}
	if len(resources) == 0 {
		var err error
		if resources, err = Resources(ctx, client); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Recorder{
		client: client, namespaces: slices.Clone(namespaces), cancel: cancel,
		step: -1, lastChange: time.Now(), changed: make(chan struct{}),
	}
	for _, namespace := range namespaces {
		for _, resource := range resources {
			s := &stream{
				Stream: kube.Stream{Resource: resource, Namespace: namespace, Representation: kube.Full, IfServed: true},
				api:    kube.Dynamic(client, resource, namespace), newest: make(map[types.UID]Version),
			}
			r.streams = append(r.streams, s)
			r.group.Go(func() { r.follow(ctx, s) })
		}
	}
	if err := r.waitForLists(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the recording. What was recorded can still be read.
func (r *Recorder) Close() {
	r.cancel()
	r.group.Wait()
}

// BeginStep begins a step of the user: the versions that come from now on belong to the step.
// [Recorder.CatchUp] before it separates the steps exactly.
func (r *Recorder) BeginStep(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
}

// LastChange returns when the last version came, of anything but Leases and Events. Without any version it
// is when the recording began.
func (r *Recorder) LastChange() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastChange
}

// History returns what has been recorded so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{Namespaces: r.namespaces, Versions: slices.Clip(r.versions), Gaps: slices.Clone(r.gaps)}
}

// Versions returns all versions so far, in the order in which they came.
func (r *Recorder) Versions() []Version { return r.History().Versions }

// State returns the objects that exist, as far as they are recorded.
func (r *Recorder) State() State { return r.History().State() }

// follow records a stream until ctx ends.
func (r *Recorder) follow(ctx context.Context, s *stream) {
	for change, err := range watch.Follow(ctx, r.client, s.Stream) {
		r.recordChange(s, change, err)
	}
}

// recordChange records a change of a stream, or a failure.
func (r *Recorder) recordChange(s *stream, change watch.Change, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		s.recordErrorLocked(err)
	case change.Type == watch.ChangeWatchOpened:
		s.failure = nil
	case change.Type == watch.ChangeListed:
		// The versions between two lists are lost.
		if name := s.Resource.String(); s.isListed && !slices.Contains(r.gaps, name) {
			r.gaps = append(r.gaps, name)
		}
		s.isListed = true
	case change.Type == watch.ChangeAdded, change.Type == watch.ChangeModified, change.Type == watch.ChangeDeleted:
		r.addVersionLocked(s, change)
	default:
		return
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (s *stream) recordErrorLocked(err error) {
	if _, ok := errors.AsType[*kube.DecodeError](err); ok {
		s.unreadable = append(s.unreadable, err)
	} else {
		s.failure = err
	}
}

// addVersionLocked adds the version that a change brings.
func (r *Recorder) addVersionLocked(s *stream, change watch.Change) {
	before := s.newest[change.UID]
	v := Version{
		Resource: s.Resource.String(), Namespace: change.Key.Namespace, Name: change.Key.Name, UID: change.UID,
		ResourceVersion: change.ResourceVersion, Object: before.Object, Deleted: change.Type == watch.ChangeDeleted,
		At: time.Now(), Step: r.step,
	}
	if change.Object != nil {
		object, err := s.api.Decode(change.Object)
		if err != nil {
			s.unreadable = append(s.unreadable, err)
			return
		}
		v.Object = object.Object
	}
	if !v.Deleted {
		v.Manager = writerOf(before, v)
	}
	s.newest[v.UID] = v
	r.versions = append(r.versions, v)
	if !isNoise(v.Resource) {
		r.lastChange = v.At
	}
}

// waitForLists waits until every stream has been complete.
func (r *Recorder) waitForLists(ctx context.Context) error {
	for _, s := range r.streams {
		if err := r.wait(ctx, s, func() bool { return s.isListed }); err != nil {
			return fmt.Errorf("record %s: %w", s.Stream, err)
		}
	}
	return nil
}

// wait waits until a condition on a stream holds, and calls the condition with the lock held. It
// returns an error when ctx ends, or if an object of the stream cannot be decoded.
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
		case <-ctx.Done():
			if failure != nil {
				return fmt.Errorf("%w, after: %w", context.Cause(ctx), failure)
			}
			return context.Cause(ctx)
		}
	}
}

// CatchUp waits until everything is recorded that the server has when CatchUp is called. It lists the
// metadata of all objects, without naming a version, so that the answers are not older than the call.
func (r *Recorder) CatchUp(ctx context.Context) error {
	errs := make([]error, len(r.streams))
	var group sync.WaitGroup
	for i, s := range r.streams {
		group.Go(func() {
			if err := r.catchUp(ctx, s); err != nil {
				errs[i] = fmt.Errorf("catch up with %s: %w", s.Stream, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (r *Recorder) catchUp(ctx context.Context, s *stream) error {
	// Objects that are recorded only later may be missing from the list.
	present := r.presentObjects(s)
	list, err := kube.Metadata(r.client, s.Resource, s.Namespace).List(ctx)
	if err != nil && !kube.IsNotFound(err) && !kube.IsNoResource(err) {
		return err
	}
	listed := make(map[types.UID]string, len(list))
	for _, object := range list {
		listed[object.UID] = object.ResourceVersion
	}
	return r.wait(ctx, s, func() bool {
		for uid, version := range listed {
			if newest, ok := s.newest[uid]; !ok || !newest.Deleted && ident.IsNewer(version, newest.ResourceVersion) {
				return false
			}
		}
		return !slices.ContainsFunc(present, func(uid types.UID) bool {
			return listed[uid] == "" && !s.newest[uid].Deleted
		})
	})
}

// presentObjects returns the objects of a stream that are recorded and not deleted.
func (r *Recorder) presentObjects(s *stream) []types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var present []types.UID
	for uid, v := range s.newest {
		if !v.Deleted {
			present = append(present, uid)
		}
	}
	return present
}
