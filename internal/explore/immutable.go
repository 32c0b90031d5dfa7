package explore

import (
	"net/http"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
)

// refusedWrites returns the writes of the program in a step that the API server found invalid: as a
// rule, changes of fields that cannot change.
func (r *run) refusedWrites(step int) (writes []string) {
	for _, request := range r.proxy.Requests() {
		p := request.Point
		if p.Step != step || !p.IsWrite() || request.Code != http.StatusUnprocessableEntity || request.Fault != "" {
			continue
		}
		if write := request.String(); !slices.Contains(writes, write) {
			writes = append(writes, write)
		}
	}
	return writes
}

// hasReported reports whether the program has reported something to its user in a step: by an Event, or by
// another status of an object that the user has applied.
func (r *run) hasReported(step int) bool {
	h := r.recording.History()
	before := 0
	for _, v := range h.Versions {
		if v.Step < step {
			before++
		} else if v.Step == step && v.Resource == "events" && !isControlPlane(v.Manager) {
			return true
		}
	}
	return slices.ContainsFunc(history.Changes(h, before, r.explorer.historyOptions()), func(d finding.Difference) bool {
		resource, _, _ := strings.Cut(d.Object, "/")
		return strings.HasPrefix(d.Path, "status.") && d.Path != "status.observedGeneration" && r.explorer.isOfUser(resource)
	})
}

// isOfUser reports whether the user applies an object of a resource.
func (e *explorer) isOfUser(resource string) bool {
	for _, step := range e.options.Steps {
		for _, raw := range step.Apply {
			object, err := e.decode(raw, "")
			if err != nil {
				continue
			}
			if api, err := e.apiOf(object.GroupVersionKind(), ""); err == nil && resourceName(api.Resource()) == resource {
				return true
			}
		}
	}
	return false
}
