package follow

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// errRestored ends a watch if the server was restored from a backup older than the version from which the
// watch was resumed.
var errRestored error = restoredError{}

// restoredError is the error that a probe has found a restored backup.
type restoredError struct{}

func (restoredError) Error() string {
	return "the server has lost what it has shown before, as after a restored backup: everything is listed again"
}

// IsRestoration returns true. Package internal/cache recognises the error by this method.
func (restoredError) IsRestoration() bool { return true }

const (
	// probeDelay is how long a watch that was reopened may bring nothing new before the probe.
	probeDelay = 12 * time.Second
	// maxProbeDelay limits the wait between probes that fail.
	maxProbeDelay = 5 * time.Minute
)

// prober finds out whether a server was restored from a backup.
//
// A restored server does not refuse a watch from a version that it has not reached yet. The watch is silent
// until the server reaches the version, and the changes until then are lost. Silence alone is normal. So a
// watch that was reopened after an unexpected end is probed by a list of one object, if the watch brings
// nothing new.
//
// Example: the newest change of the stream is b at version 100. The connection breaks, and the watch is
// reopened from version 100. It is silent for 12 seconds. The list of b has version 60: this proves a
// restoration, because the server had reached version 100. If the list has version 120, and b at version
// 100 is in it, nothing was lost. If b is not in it, the deletion of b is on its way, or the server was restored and
// the watch will never show the deletion. A second list decides: it follows only if the watch has stayed silent.
type prober struct {
	handler wire.Handler
	// isInterrupted is true if a watch has ended in another way than the server was asked for, so that the
	// server may have been restored since.
	isInterrupted bool
	// cancel ends the probe of the current watch. It is nil if there is none: a probe runs while the watch is silent
	// after an interruption.
	cancel  context.CancelFunc
	running sync.WaitGroup
	// expected is the state that the server had before the watch.
	expected expectedState
	// hasPassed is true once the server has answered that it has the expected state. The probe sets it.
	hasPassed bool
}

// recordInterruption records that a watch has ended unexpectedly.
func (p *prober) recordInterruption() { p.isInterrupted = true }

// reset records that a list begins. The list shows what the server has now, so no probe is needed after it.
func (p *prober) reset() { p.isInterrupted = false }

// start probes the server if the watch before was interrupted and the current one stays silent. It calls
// onRestored, at most once and from another goroutine, if the server was restored. The caller must call stop.
func (p *prober) start(ctx context.Context, expected func() expectedState, onRestored func()) {
	if !p.isInterrupted {
		return
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.expected, p.hasPassed = expected(), false
	p.running.Go(func() { p.probe(ctx, onRestored) })
}

// probe waits for probeDelay and then probes the server, again and again until it answers.
func (p *prober) probe(ctx context.Context, onRestored func()) {
	wasAbsent := false
	for delay := probeDelay; clock.SleepReal(ctx, delay) == nil; delay = min(2*delay, maxProbeDelay) {
		state, err := p.expected.read(ctx, p.handler)
		switch {
		case err != nil:
			continue // the server cannot answer now
		case ctx.Err() != nil:
		case p.expected.isLost(state):
			if !wasAbsent && p.expected.mayBeDeleted(state) {
				wasAbsent = true
				continue
			}
			onRestored()
		default:
			p.hasPassed = true
		}
		return
	}
}

// stop ends the probe of the current watch, if there is one, and waits for its end.
func (p *prober) stop() {
	if p.cancel == nil {
		return
	}
	p.cancel()
	p.running.Wait()
	p.cancel = nil
	if p.hasPassed {
		p.isInterrupted = false
	}
}

// recordEvent ends the probe if the version of an event of the watch is newer than all versions that the
// server had before the watch. An older event proves nothing: a restored server sends again the changes that
// the backup has. A version that cannot be compared ends the probe too.
func (p *prober) recordEvent(version string) {
	if p.cancel != nil && !ident.HasReached(p.expected.version, version) {
		p.stop()
		p.isInterrupted = false
	}
}

// expectedState is the state that a server must have unless it was restored.
type expectedState struct {
	stream wire.Stream
	// version is the newest version that the server has sent. It is newer than the version to watch
	// from if a list ended with a version that is older than its last events.
	version string
	// newest is the newest known object or, if isDeleted is true, the newest deletion. Its name is
	// empty if there is neither.
	newest    trackedVersion
	isDeleted bool
}

// serverState is the state of a server: its version, and the object that has the name of the
// newest known object.
type serverState struct {
	version string
	// object is the version of the object, if isPresent is true.
	object    ident.Version
	isPresent bool
}

// read reads the current state by a list: a program that may watch may also list, but perhaps
// not get. The list names no resourceVersion. So a server that lags behind etcd waits until it has caught up.
func (s expectedState) read(ctx context.Context, h wire.Handler) (serverState, error) {
	stream := s.stream
	stream.Representation = wire.MetadataOnly
	if s.newest.key.Name != "" {
		stream.Namespace = s.newest.key.Namespace
		stream.FieldSelector = "metadata.name=" + fields.EscapeValue(s.newest.key.Name)
		if s.stream.FieldSelector != "" {
			stream.FieldSelector = s.stream.FieldSelector + "," + stream.FieldSelector
		}
	}
	response, err := h.Do(ctx, stream.Request(wire.VerbList, "limit", "1"))
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
			state.isPresent, state.object = true, ident.NewVersion(o.UID, o.ResourceVersion)
		}
	}
	return state, nil
}

// mayBeDeleted reports whether a deletion whose event is on its way explains what a server in state has lost.
func (s expectedState) mayBeDeleted(state serverState) bool {
	return !state.isPresent && !ident.IsNewer(s.version, state.version)
}

// isLost reports whether a server in state has lost the expected state. An object that is newer
// than the expected version is no loss: its event is on its way.
func (s expectedState) isLost(state serverState) bool {
	switch {
	case ident.IsNewer(s.version, state.version):
		return true
	case s.newest.key.Name == "":
		return false
	case !state.isPresent:
		return !s.isDeleted
	case !s.isDeleted && state.object.Equal(s.newest.version):
		return false
	}
	return !ident.NewVersion("", s.version).Before(state.object)
}
