package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// stateReader brings the recording of a run up to the present state of the server and of the external system.
type stateReader struct {
	recording interface {
		CatchUp(ctx context.Context, resources ...string) error
		RecordExternalSystem(text string)
	}
	// requests returns the requests of the program so far.
	requests func() []proxy.RequestRecord
	// canBeRefused is true if the server may refuse requests for a time, because a fault of the run interrupts it.
	canBeRefused bool
	// namespace is the namespace of the run.
	namespace string
	// look is [ExternalSystem.Look]. It may be nil.
	look func(ctx context.Context, namespace string) (string, error)
}

// catchUp waits until the recorder has all objects that the server has, and records what the run has in the external
// system.
func (r *stateReader) catchUp(ctx context.Context) error {
	written := writtenResources(r.requests())
	for until := time.Now().Add(faults.MaxReturn); ; {
		err := r.recording.CatchUp(ctx, written...)
		if err == nil {
			return r.recordExternalSystem(ctx)
		}
		if !r.canBeRefused || time.Now().After(until) {
			return err
		}
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// recordExternalSystem records what the run has in the external system.
func (r *stateReader) recordExternalSystem(ctx context.Context) error {
	if r.look == nil {
		return nil
	}
	text, err := r.look(ctx, r.namespace)
	if err != nil {
		return fmt.Errorf("look at the external system: %w", err)
	}
	r.recording.RecordExternalSystem(text)
	return nil
}

// writtenResources returns the resources that requests have written.
func writtenResources(requests []proxy.RequestRecord) (written []string) {
	for _, request := range requests {
		if p := request.Point; p.IsWrite() && !slices.Contains(written, p.Resource) {
			written = append(written, p.Resource)
		}
	}
	return written
}
