package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

const (
	// minWindow is the least time without a change after which a run is at rest.
	minWindow = 300 * time.Millisecond
	// referenceWindow is that time in the reference runs, and the longest such time in other runs.
	referenceWindow = 1500 * time.Millisecond
	// referenceRest is how long a reference run may take to come to rest after a step.
	referenceRest = time.Minute
	// slowDelay is added to each request of the slow reference.
	slowDelay = 40 * time.Millisecond
	// referenceCount is the number of references, the last of which is slow.
	referenceCount = 3
)

// references are the runs without faults.
type references struct {
	// runs are the results of the runs. The last run is slow.
	runs []*runResult
	// masks are what the comparison after each step ignores.
	masks []*history.Masks
	// unstable holds, by the index, the steps without a stable reference, and why. The states after these steps are not
	// compared.
	unstable map[int]error
	// leftOut are the reference runs that could not be used, with the reason.
	leftOut []string
	// election is the election of the program, or nil if the program elects no leader.
	election *election
}

// minReferenceCount is how many references are necessary: what differs between runs shows only in two.
const minReferenceCount = 2

// newReferences returns the references of these runs. errs holds why a run could not be made, by the index of the run.
// A run that could not be made, or that did not come to rest, is left out. Error: [ErrNoReference] if fewer than two
// runs are left.
func newReferences(runs []*runResult, errs []error, steps []finding.Step, o history.Options) (*references, error) {
	r := &references{unstable: make(map[int]error)}
	var failures []error
	for i, out := range runs {
		switch {
		case errs[i] != nil:
			failures = append(failures, fmt.Errorf("reference run %d: %w", i+1, errs[i]))
		case out.verdict != "":
			failures = append(failures, fmt.Errorf("reference run %d: %s: %s", i+1, out.verdict, out.differences))
		default:
			r.runs = append(r.runs, out)
		}
	}
	if len(r.runs) < minReferenceCount {
		return nil, fmt.Errorf("%w: %w", ErrNoReference, errors.Join(failures...))
	}
	for _, failure := range failures {
		r.leftOut = append(r.leftOut, failure.Error())
	}
	for i := range steps {
		var states []history.State
		for _, out := range r.runs {
			states = append(states, out.states[i])
		}
		masks, err := history.NewMasks(states, o)
		if err != nil {
			r.unstable[i] = err
		}
		r.masks = append(r.masks, masks)
	}
	if election, isElecting := electionOf(r.runs[0].requests); isElecting {
		r.election = &election
	}
	return r, nil
}

// masked returns the fields that differ between the references.
func (r *references) masked() (paths []string) {
	for _, masks := range r.masks {
		for _, path := range masks.Varying() {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// waitLimits returns the limits of all other runs. They follow from the longest pause in a reference that is not slow.
// settle is the least time without a change.
func (r *references) waitLimits(settle time.Duration) waitLimits {
	var pause time.Duration
	for _, out := range r.runs[:max(len(r.runs)-1, 1)] {
		pause = max(pause, out.longestPause())
	}
	p := waitLimits{
		window:   max(min(max(pause+pause/2, minWindow), referenceWindow), settle),
		rest:     20*time.Second + 2*settle,
		converge: 12 * time.Second,
	}
	if r.election != nil {
		p.rest += r.election.takeOverTime()
	}
	return p
}

// histories returns the histories of the references.
func (r *references) histories() (all []history.History) {
	for _, out := range r.runs {
		all = append(all, out.history)
	}
	return all
}

// comparison returns the comparison of a run with faults: the state after a step must be the state of the references.
func (r *references) comparison(all []faults.Fault) compareState {
	var kinds []faults.Kind
	for _, f := range all {
		kinds = append(kinds, f.Kind)
	}
	return func(step int, state history.State) []finding.Difference {
		if r.unstable[step] != nil {
			return nil
		}
		return r.masks[step].Compare(r.runs[0].states[step], state, kinds...)
	}
}

// points returns the requests that the first two references have in common, in the order of the first one. The writes
// that they do not have in common are unrepeated.
func (r *references) points() (points []proxy.Point, unrepeated []string) {
	second := make(map[proxy.Point]bool)
	for _, request := range r.runs[1].requests {
		second[request.Point] = true
	}
	for _, request := range r.runs[0].requests {
		switch {
		case !isPoint(request) || slices.Contains(points, request.Point):
		case second[request.Point]:
			points = append(points, request.Point)
		case request.Point.IsWrite():
			unrepeated = append(unrepeated, request.Point.String())
		}
	}
	return points, unrepeated
}

// codes returns the HTTP statuses of the answers to the requests of the first reference.
func (r *references) codes() map[proxy.Point]int {
	codes := make(map[proxy.Point]int)
	for _, request := range r.runs[0].requests {
		codes[request.Point] = request.Code
	}
	return codes
}

// streams returns the resources of which the program received changes on a watch during a step, in each of
// the first two references. Without a change no fault of a watch can happen.
func (r *references) streams(step int) (resources []string) {
	has := func(reference *runResult, resource string) bool {
		return slices.ContainsFunc(reference.deliveries, func(d proxy.Delivery) bool {
			return d.Resource == resource && d.Step == step && d.Type != ""
		})
	}
	for _, d := range r.runs[0].deliveries {
		if !slices.Contains(resources, d.Resource) && has(r.runs[0], d.Resource) && has(r.runs[1], d.Resource) {
			resources = append(resources, d.Resource)
		}
	}
	return resources
}

// hasWebhooks reports whether a program has published webhook configurations.
func hasWebhooks(requests []proxy.RequestRecord) bool {
	return slices.ContainsFunc(requests, func(request proxy.RequestRecord) bool {
		return request.Point.IsWrite() && faults.IsWebhookConfiguration(request.Point.Resource) && request.Code/100 == 2
	})
}

// servesCalls reports whether a program has published webhook configurations or a conversion, so that API servers call
// it.
func servesCalls(requests []proxy.RequestRecord) bool {
	return hasWebhooks(requests) || slices.ContainsFunc(requests, func(request proxy.RequestRecord) bool {
		return request.Point.IsWrite() && request.Point.Resource == faults.Definitions && request.Code/100 == 2
	})
}

// externalParts returns how many parts of data passed to the external system and back in a step of each of the first
// two references.
func (r *references) externalParts(step int) int {
	parts := func(out *runResult) int {
		if step < len(out.externalParts) {
			return out.externalParts[step]
		}
		return 0
	}
	return min(parts(r.runs[0]), parts(r.runs[1]))
}

// contentOf returns an object as the first reference shows it after the first step, or nil.
func (r *references) contentOf(o faults.Object) map[string]any {
	first := r.runs[0]
	names := history.NewNames(first.history.Namespaces...)
	for _, v := range first.states[0].Objects() {
		if v.Resource == o.Resource && names.Normalize(v.Name) == o.Name {
			return v.Object
		}
	}
	return nil
}

// warnings returns why the references may prove nothing: a program that does nothing right without faults does
// the same with them.
func (r *references) warnings() (warnings []string) {
	for _, text := range r.leftOut {
		warnings = append(warnings, "A run without faults is left out. "+text)
	}
	for _, step := range slices.Sorted(maps.Keys(r.unstable)) {
		warnings = append(warnings,
			fmt.Sprintf("The state after step %d is not compared, because the runs without faults differ there: %s", step+1,
				oneLine(r.unstable[step])))
	}
	writes, failures, lastFailure := 0, 0, ""
	errorLine, linesCount := "", 0
	for _, reference := range r.runs {
		for _, request := range reference.requests {
			if !isPoint(request) || !request.Point.IsWrite() {
				continue
			}
			writes++
			if request.Code/100 != 2 {
				failures++
				lastFailure = fmt.Sprintf("%s, was answered with %d", request.Point, request.Code)
				if request.Code == 0 {
					lastFailure = fmt.Sprintf("%s, got no answer", request.Point)
				}
			}
		}
		if last := reference.lastError(); last != "" {
			linesCount++
			errorLine = last
		}
	}
	switch {
	case writes == 0:
		warnings = append(warnings,
			"The program wrote no object in the reference runs. Their end states are those of a program that does nothing.")
	case writes == failures:
		warnings = append(warnings, fmt.Sprintf("Each of the %d writes of the reference runs failed: the last one, %s. Their end states are those of a program that does nothing.", writes, lastFailure))
	}
	if linesCount == len(r.runs) {
		warnings = append(warnings, "The program logged an error in each reference run. What fails without faults is not compared with anything right. The last error: "+errorLine)
	}
	return warnings
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// isPoint reports whether faults happen at a request: discovery, leases, Events, reviews and what the program
// asks before the first step are left out, and watches have kinds of their own.
func isPoint(r proxy.RequestRecord) bool {
	isOfObjects := r.Point.Resource != "" && !proxy.IsBackground(r.Point.Resource) && !proxy.IsReview(r.Point.Resource)
	return isOfObjects && r.Point.Step >= 0 && r.Point.Verb != "watch"
}
