package engine

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// abandonedWrite returns a write that a fault has denied until it passed by itself or the user changed the sample, and
// that the program has not made again. It considers the faults up to a step, and reports whether there is such a write.
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

// invalidWrites returns the writes of the program in a step that the API server found invalid: as a rule, changes of
// fields that cannot change.
func invalidWrites(requests []proxy.RequestRecord, step int) (writes []string) {
	for _, request := range requests {
		isInvalid := request.Point.IsWrite() && request.Code == http.StatusUnprocessableEntity && request.Fault == ""
		if write := request.String(); isInvalid && request.Point.Step == step && !slices.Contains(writes, write) {
			writes = append(writes, write)
		}
	}
	return writes
}

// hasReported reports whether the program has reported something to its user in a step: by an Event, or by another
// status of an object that the user has applied. isApplied reports whether the user applies objects of a resource.
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

// foreignOwnerPattern matches what a program logs that has found its child in the hands of another object.
const foreignOwnerPattern = `(?i)already (owned|exists)|owned by another|controlled by another|controls it|belongs to another`

// hasReportedMissing reports whether the program has reported why an object of the user lacks a child: in the status of
// the object, in an Event about the object, or in a line of the log that names the object. A line that names another
// owner of the child is no such report: the names of the children of two objects are the same. An empty name stands for
// all objects. errorLines are the lines of the log with errors.
func hasReportedMissing(name string, state history.State, errorLines []string) bool {
	isOfOwner := regexp.MustCompile(foreignOwnerPattern).MatchString
	hasName := regexp.MustCompile(`(^|[^a-z0-9.-])` + regexp.QuoteMeta(name) + `($|[^a-z0-9.-])`).MatchString
	isReport := func(line string) bool { return (name == "" || hasName(line)) && !isOfOwner(line) }
	if slices.ContainsFunc(errorLines, isReport) {
		return true
	}
	for _, v := range state.Objects() {
		switch {
		case v.Resource == "events" && !history.IsControlPlane(v.Manager):
			about, _, _ := unstructured.NestedString(v.Object, "involvedObject", "name")
			kind, _, _ := unstructured.NestedString(v.Object, "type")
			message, _, _ := unstructured.NestedString(v.Object, "message")
			if kind == "Warning" && (name == "" || about == name) && !isOfOwner(message) {
				return true
			}
		case hasCustomGroup(v.Content()) && (name == "" || v.Name == name) && hasProblem(v.Object["status"]):
			return true
		}
	}
	return false
}

// hasProblem reports whether a status names a problem: by a condition, or by a text in a field whose name says so.
func hasProblem(status any) bool {
	switch status := status.(type) {
	case map[string]any:
		kind, _ := status["type"].(string)
		if state, isCondition := status["status"].(string); isCondition && kind != "" {
			return isProblemCondition(kind, state)
		}
		for name, value := range status {
			text, isText := value.(string)
			if isText && text != "" && regexp.MustCompile(`(?i)problem|error|message|fail`).MatchString(name) ||
				hasProblem(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(status, hasProblem)
	}
	return false
}

// isProblemCondition reports whether a condition in a state shows a problem. Examples: Ready is bad if it is not True,
// Degraded is bad if it is True, and Progressing is never bad.
func isProblemCondition(condition, state string) bool {
	switch {
	case regexp.MustCompile(`(?i)progress|reconcil|paused|suspend`).MatchString(condition):
		return false
	case regexp.MustCompile(`(?i)degraded|fail|error|stalled|problem`).MatchString(condition):
		return state == "True"
	}
	return state != "True"
}
