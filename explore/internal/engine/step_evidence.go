package engine

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// abandonedWrite returns a write that a fault has denied until it passed by itself or the user changed the sample, and that
// the program has not made again. It considers the faults up to a step, and reports whether there is such a write.
func abandonedWrite(all []faults.Fault, requests []proxy.RequestRecord, step int) (finding.Difference, bool) {
	for _, f := range all {
		if !f.IsDenial() || f.StepIndex() > step {
			continue
		}
		last, code, count := time.Time{}, 0, 0
		for _, request := range requests {
			if request.Fault == string(f.Kind) {
				last, code, count = request.Began, request.Code, count+1
			}
		}
		isTriedAgain := slices.ContainsFunc(requests, func(request proxy.RequestRecord) bool {
			return request.Fault == "" && f.MatchesWrite(request.Point) && request.Began.After(last)
		})
		if count > 0 && !isTriedAgain {
			return finding.Difference{
				Object: f.Target().String(),
				Reason: fmt.Sprintf("The write was denied with %d (%s). It would be accepted now, but the program has not made it again. An error of a write must lead to another reconcile. Denied writes: %d.",
					code, f.Kind, count),
			}, true
		}
	}
	return finding.Difference{}, false
}

// invalidWrites returns the writes of the program in a step that the API server found invalid: as a rule, changes of fields
// that cannot change.
func invalidWrites(requests []proxy.RequestRecord, step int) (writes []string) {
	for _, request := range requests {
		isInvalid := request.Point.IsWrite() && request.Code == http.StatusUnprocessableEntity && request.Fault == ""
		if write := request.String(); isInvalid && request.Point.Step == step && !slices.Contains(writes, write) {
			writes = append(writes, write)
		}
	}
	return writes
}

// hasReported reports whether the program has reported something to its user in a step: by an Event, or by another status of
// an object that the user has applied. isApplied reports whether the user applies objects of a resource.
func hasReported(h history.History, step int, options history.Options, isApplied func(resource string) bool) bool {
	before := 0
	for _, v := range h.Versions {
		if v.Step < step {
			before++
		} else if v.Step == step && v.Resource == "events" && !history.IsControlPlane(v.Manager) {
			return true
		}
	}
	return slices.ContainsFunc(history.Changes(h, before, options), func(d finding.Difference) bool {
		resource, _, _ := strings.Cut(d.Object, "/")
		isOfStatus := strings.HasPrefix(d.Path, "status.") && d.Path != "status.observedGeneration"
		return isOfStatus && isApplied(resource)
	})
}
