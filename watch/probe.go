package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// errRestored ends a watch whose server has lost the state that the watch was resumed from.
var errRestored = errors.New("the server has lost what it has shown before, as after a restored backup: everything is listed again")

const (
	// probeDelay is how long a watch that was reopened may bring nothing new before the probe.
	probeDelay = 12 * time.Second
	// maxProbeDelay limits the wait between probes that fail.
	maxProbeDelay = 5 * time.Minute
)

// probe finds out whether a server was restored from a backup. A restored server does not
// refuse a watch from a version that it has not reached yet: it is silent until it reaches that
// version, and everything in between is lost. Silence alone is normal. So a watch that was reopened
// after an unexpected end, and brings nothing new, is probed once, by a list of one object.
type probe struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	// expected is the state that the server had shown before the watch.
	expected expectedState
	// passed is true once the server has shown that it has the state that was seen.
	passed atomic.Bool
}

// startProbe probes the server if the watch from version stays silent. It calls restored, at
// most once and from another goroutine, if the server has lost that version. The caller must
// call stopProbe.
func (f *follower) startProbe(ctx context.Context, restored func()) {
	ctx, cancel := context.WithCancel(ctx)
	p := &probe{cancel: cancel, expected: f.expectedState()}
	f.probe = p
	p.running.Go(func() {
		for delay := probeDelay; clock.SleepReal(ctx, delay) == nil; delay = min(2*delay, maxProbeDelay) {
			state, err := p.expected.read(ctx, f.handler)
			switch {
			case err != nil:
				continue // the server cannot answer now
			case ctx.Err() != nil:
			case p.expected.isLost(state):
				restored()
			default:
				p.passed.Store(true)
			}
			return
		}
	})
}

// stopProbe ends the probe of the current watch, if it runs, and waits for its end.
func (f *follower) stopProbe() {
	if f.probe == nil {
		return
	}
	f.probe.cancel()
	f.probe.running.Wait()
	if f.probe.passed.Load() {
		f.interrupted = false
	}
	f.probe = nil
}

// endProbeAt ends the probe without a result if an event has a version that is newer than all versions
// that the server had shown before the watch. An older event proves nothing, because a restored server
// repeats the part of the past that it has kept. A version that cannot be compared ends the probe.
func (f *follower) endProbeAt(version string) {
	if f.probe != nil && !ident.HasReached(f.probe.expected.version, version) {
		f.stopProbe()
		f.interrupted = false
	}
}

// expectedState is the state that a server must have unless it was restored.
type expectedState struct {
	stream kube.Stream
	// version is the newest version that the server has shown. It is newer than the version to watch
	// from if a list ended with a version that is older than its last events.
	version string
	// newest is the newest known object or, if deleted is true, the newest deletion. Its name is
	// empty if there is neither.
	newest  trackedVersion
	deleted bool
}

func (f *follower) expectedState() expectedState {
	newest, deleted, _ := f.tracker.newest()
	version := f.version
	if shown := newest.version.ResourceVersion(); ident.IsNewer(shown, version) {
		version = shown
	}
	return expectedState{stream: f.stream, version: version, newest: newest, deleted: deleted}
}

// serverState is the state of a server: its version, and the object that has the name of the
// newest known object.
type serverState struct {
	version string
	object  ident.Version
	exists  bool
}

// read reads the present state by a list: a program that may watch may also list, but perhaps
// not get. The list names no resourceVersion, so that a server that lags behind etcd does not
// answer from its own past.
func (s expectedState) read(ctx context.Context, h kube.Handler) (serverState, error) {
	stream := s.stream
	stream.Representation = kube.MetadataOnly
	if s.newest.key.Name != "" {
		stream.Namespace = s.newest.key.Namespace
		stream.FieldSelector = "metadata.name=" + fields.EscapeValue(s.newest.key.Name)
		if s.stream.FieldSelector != "" {
			stream.FieldSelector = s.stream.FieldSelector + "," + stream.FieldSelector
		}
	}
	response, err := h.Do(ctx, stream.Request(kube.VerbList, "limit", "1"))
	if err != nil {
		return serverState{}, err
	}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		} `json:"items"`
	}
	if err := kube.Unmarshal(response.Body, &list); err != nil {
		return serverState{}, err
	}
	state := serverState{version: list.Metadata.ResourceVersion}
	for _, item := range list.Items {
		if o := item.Metadata; o.Name == s.newest.key.Name && o.Namespace == s.newest.key.Namespace {
			state.exists, state.object = true, ident.NewVersion(o.UID, o.ResourceVersion)
		}
	}
	return state, nil
}

// isLost reports whether a server in state has lost what it had shown. An object that is newer
// than the expected version is no loss: its event is on its way.
func (s expectedState) isLost(state serverState) bool {
	switch {
	case ident.IsNewer(s.version, state.version):
		return true
	case s.newest.key.Name == "":
		return false
	case !state.exists:
		return !s.deleted
	case !s.deleted && state.object.Equal(s.newest.version):
		return false
	}
	return !ident.NewVersion("", s.version).Before(state.object)
}
