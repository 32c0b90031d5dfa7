package engine

import (
	"net/http"
	"slices"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
)

// refusedWrites returns the writes of the program in a step that the API server found invalid: as a
// rule, changes of fields that cannot change.
func refusedWrites(requests []proxy.Request, step int) (writes []string) {
	for _, request := range requests {
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
func hasReported(h history.History, step int, o history.Options, isOfUser func(resource string) bool) bool {
	before := 0
	for _, v := range h.Versions {
		if v.Step < step {
			before++
		} else if v.Step == step && v.Resource == "events" && !isControlPlane(v.Manager) {
			return true
		}
	}
	return slices.ContainsFunc(history.Changes(h, before, o), func(d finding.Difference) bool {
		resource, _, _ := strings.Cut(d.Object, "/")
		return strings.HasPrefix(d.Path, "status.") && d.Path != "status.observedGeneration" && isOfUser(resource)
	})
}
