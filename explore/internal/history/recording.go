package history

import (
	"context"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/proxy"
)

// Recording is the versions of all objects in the namespaces of a run. Its methods are safe for
// concurrent use.
type Recording struct {
	recorder   *Recorder
	namespaces []string

	// The following fields are guarded by recorder.mu.

	// versions grows only at its end.
	versions   []Version
	step       int
	lastChange time.Time
	gaps       []string
}

// Close ends the recording. What was recorded can still be read.
func (c *Recording) Close() {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	c.recorder.recordings = slices.DeleteFunc(c.recorder.recordings, func(each *Recording) bool { return each == c })
}

// BeginStep begins a step of the user: the versions that come from now on belong to the step.
// A call of [Recording.CatchUp] before BeginStep separates the steps exactly.
func (c *Recording) BeginStep(step int) {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	c.step = step
}

// RecordExternalSystem records a text about the external system of the run, as a version of an object of
// [ExternalSystemResource]. A text with the same lines as the text before is no version.
func (c *Recording) RecordExternalSystem(text string) {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	v := newExternalSystemVersion(c.namespaces[0], text)
	for _, earlier := range slices.Backward(c.versions) {
		if v.ResourceVersion == "" {
			v.ResourceVersion = earlier.ResourceVersion // all versions have an order
		}
		if earlier.Resource == ExternalSystemResource {
			if hasSameLines(earlier, v) {
				return
			}
			break
		}
	}
	c.addVersionLocked(v)
}

// LastChange returns when the last version came. Versions of Leases and Events do not count. It returns when
// the recording began if no version has come.
func (c *Recording) LastChange() time.Time {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	return c.lastChange
}

// History returns the history of the recording so far.
func (c *Recording) History() History {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	return History{
		Namespaces: c.namespaces, Versions: slices.Clip(c.versions), Gaps: slices.Clone(c.gaps),
		SecretKey: c.recorder.secretKey,
	}
}

// Versions returns all versions so far, in the order in which they came.
func (c *Recording) Versions() []Version { return c.History().Versions }

// State returns the objects that exist, as far as they are recorded.
func (c *Recording) State() State { return c.History().State() }

// CatchUp waits until all objects are recorded that the server has when CatchUp is called. It waits for the
// resources of which a recording has had objects, and for the named resources, such as deployments.apps.
// Leases and Events are left out.
func (c *Recording) CatchUp(ctx context.Context, resources ...string) error {
	return c.recorder.catchUp(ctx, c.namespaces, resources)
}

func (c *Recording) addVersionLocked(v Version) {
	v.Step = c.step
	c.versions = append(c.versions, v)
	if !proxy.IsBackground(v.Resource) {
		c.lastChange = v.At
	}
}

// addGapLocked records that versions of a resource may be missing.
func (c *Recording) addGapLocked(resource string) {
	if !slices.Contains(c.gaps, resource) {
		c.gaps = append(c.gaps, resource)
	}
}
