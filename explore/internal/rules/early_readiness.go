package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// earlyReadiness is the rule "ready too early": a status is not ready before its workloads, and its generations do not
// go back.
type earlyReadiness struct{}

func (earlyReadiness) Describe() Description {
	return Description{Name: "ready too early", Meaning: "A status said more than the program could know: it was ready before its workload, or its observedGeneration went back."}
}

func (earlyReadiness) Violations(r *Run) (all []Violation) {
	if !r.isOrdinary() || r.Faults.HasKind(faults.Stale) || r.Faults.NeedsStandby() {
		return nil
	}
	isReported := make(map[string]bool) // by uid, condition and generation
	trueCounts := make(map[string]int)  // by the same keys
	for _, s := range statuses(r) {
		object := r.Object(s.Version)
		if s.former.ObservedGeneration > s.ObservedGeneration && s.ObservedGeneration > 0 {
			all = append(all, Violation{
				Severity: Failure, Object: object, Paths: []string{"status.observedGeneration"}, Effect: "went back", Step: s.Step,
				At:   s.At,
				Text: fmt.Sprintf("The observedGeneration of %s went back", object),
				Evidence: fmt.Sprintf("The program had written %d, and wrote %d %s",
					s.former.ObservedGeneration, s.ObservedGeneration, r.timeText(s.Version)),
			})
		}
		for _, c := range s.Conditions {
			path := fmt.Sprintf("status.conditions[type=%s].status", c.Type)
			key := fmt.Sprintf("%s %s %d", s.UID, c.Type, s.generation)
			if c.Type != "Ready" && c.Type != "Available" || c.Status != metav1.ConditionTrue || !s.isCurrent(c) ||
				s.former.isTrue(c.Type) && s.former.generation == s.generation {
				continue
			}
			if trueCounts[key]++; trueCounts[key] == 2 {
				all = append(all, Violation{
					Severity: Note, Object: object, Paths: []string{path}, Effect: "true twice", Step: s.Step, At: s.At,
					Text:     fmt.Sprintf("The condition %s of %s became True, False and True in one generation", c.Type, object),
					Evidence: fmt.Sprintf("It became True again %s", r.timeText(s.Version)),
				})
			}
			workload, state, hasNoneReady := unreadyWorkload(r, s, c)
			if state == "" || isReported[key] {
				continue
			}
			isReported[key] = true
			v := Violation{
				Severity: Failure, Object: object, Paths: []string{path}, Effect: "early", Step: s.Step, At: s.At,
				Text: fmt.Sprintf("The condition %s of %s was True too early", c.Type, object),
				Evidence: fmt.Sprintf("When the program wrote it, %s, the last state of %s that it had received was not ready: %s",
					r.timeText(s.Version), r.Object(workload), state),
			}
			switch isOfNoGeneration := c.ObservedGeneration == 0 && s.ObservedGeneration == 0; {
			case c.Type != "Available":
			case !hasNoneReady:
				v.Severity = Note // a rollout keeps what is available
			case isOfNoGeneration:
				v.Severity = Warning // some programs mean that the objects exist
			}
			all = append(all, v)
		}
	}
	return all
}

// status is the status of a custom object in one version.
type status struct {
	history.Version
	statusFields
	generation int64
	// former is the status in the version before.
	former *status
	// write is the request of the program that has made the version.
	write *proxy.RequestRecord
}

// statusFields are the fields of a status that the rule looks at.
type statusFields struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// isTrue reports whether a condition is True for the generation of its version.
func (s *status) isTrue(condition string) bool {
	return slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
		return c.Type == condition && c.Status == metav1.ConditionTrue && s.isCurrent(c)
	})
}

// isCurrent reports whether a condition is about the generation of its version, or does not say of which generation it
// is.
func (s *status) isCurrent(c metav1.Condition) bool {
	observed := c.ObservedGeneration
	if observed == 0 {
		observed = s.ObservedGeneration
	}
	return observed == 0 || observed == s.generation
}

// statuses returns the statuses of custom objects whose status has changed, in the order of the history.
func statuses(r *Run) (all []*status) {
	latest := make(map[types.UID]*status)
	former := make(map[types.UID]history.Version)
	for _, v := range r.Versions {
		if v.IsDeleted || !history.HasCustomGroup(v) {
			continue
		}
		before := former[v.UID]
		former[v.UID] = v
		s := &status{Version: v, generation: v.Content().GetGeneration(), former: latest[v.UID]}
		if raw, err := json.Marshal(v.Object["status"]); err != nil || json.Unmarshal(raw, &s.statusFields) != nil {
			continue // a status of another form says nothing
		}
		if s.former == nil {
			s.former = &status{}
		}
		latest[v.UID] = s
		if s.write = r.writeOf(successor{before, v}); s.write != nil {
			all = append(all, s)
		}
	}
	return all
}

// receptionTime is how long a state may have been delivered and not have been read: a reconcile that has begun before
// goes on with the state before.
const receptionTime = time.Second

// unreadyWorkload returns a workload that the object of a status controls, if no state of the workload was ready that
// the program may have used for the condition. state says why the workload is not ready, and is empty if there is no
// such workload. hasNoneReady is true if no replica of the workload is ready or available.
//
// The program may use the newest state that it has received for longer than receptionTime, and each state that it has
// received since. A state before the program's own last write of the workload is none of them: the program has
// the answer to the write.
func unreadyWorkload(
	r *Run, s *status, c metav1.Condition,
) (workload history.Version, state string, hasNoneReady bool) {
	if !s.isCurrent(c) {
		return history.Version{}, "", false
	}
	for _, child := range workloadsOf(r, s.UID, s.At) {
		states := receivedStates(r, child, s.write)
		if len(states) == 0 {
			continue
		}
		reasons := make([]string, 0, len(states))
		for _, v := range states {
			reason, isNoneReady := whyNotReady(v)
			if reason == "" || !isNoneReady && c.ObservedGeneration == 0 && s.ObservedGeneration == 0 {
				break
			}
			hasNoneReady = isNoneReady
			reasons = append(reasons, reason)
		}
		if len(reasons) == len(states) {
			return child, reasons[len(reasons)-1], hasNoneReady
		}
	}
	return history.Version{}, "", false
}

// workloadsOf returns the newest version of each workload that an object controls at a time.
func workloadsOf(r *Run, owner types.UID, at time.Time) (all []history.Version) {
	latest := make(map[types.UID]history.Version)
	for _, v := range r.Versions {
		if proxy.IsWorkload(v.Resource) && controllerOf(v) == owner && !v.At.After(at) {
			if latest[v.UID] = v; v.IsDeleted {
				delete(latest, v.UID)
			}
		}
	}
	for _, v := range r.Versions {
		if latest[v.UID].ResourceVersion == v.ResourceVersion && latest[v.UID].UID == v.UID {
			all = append(all, v)
		}
	}
	return all
}

// receivedStates returns the states of a workload that a process may have used for a write, in the order of their
// versions.
func receivedStates(r *Run, workload history.Version, write *proxy.RequestRecord) (states []history.Version) {
	versions := make(map[string]history.Version)
	for _, v := range r.Versions {
		if v.UID == workload.UID && !v.IsDeleted {
			versions[v.ResourceVersion] = v
		}
	}
	type reception struct {
		history.Version
		at time.Time
	}
	var received []reception
	ownVersion := ""
	for _, request := range r.Requests {
		v, exists := versions[request.Version]
		isOwn := request.Session == write.Session && request.Point.Resource == workload.Resource && request.Code/100 == 2
		if exists && isOwn && !request.Ended.IsZero() && !request.Ended.After(write.Began) {
			ownVersion = v.ResourceVersion
			received = append(received, reception{v, request.Ended})
		}
	}
	for _, o := range r.Observations {
		v, exists := versions[o.ResourceVersion]
		if exists && o.Session == write.Session && o.Resource == workload.Resource && !o.At.After(write.Began) {
			received = append(received, reception{v, o.At})
		}
	}
	newest := "" // of what was received long enough before
	for _, each := range received {
		if write.Began.Sub(each.at) > receptionTime && (newest == "" || ident.IsNewer(each.ResourceVersion, newest)) {
			newest = each.ResourceVersion
		}
	}
	for _, each := range received {
		isOld := ownVersion != "" && ident.IsNewer(ownVersion, each.ResourceVersion) ||
			newest != "" && ident.IsNewer(newest, each.ResourceVersion)
		if !isOld {
			states = append(states, each.Version)
		}
	}
	slices.SortFunc(states, func(a, b history.Version) int { return ident.Compare(a.ResourceVersion, b.ResourceVersion) })
	return states
}

// whyNotReady returns why a workload is not ready, or an empty text. hasNoneReady is true if no replica of it is ready
// or available. A workload whose controller has not observed its generation is not ready, because nothing is known of
// it. A workload that is being rolled out and has replicas may be ready: programs differ in that.
func whyNotReady(v history.Version) (reason string, hasNoneReady bool) {
	var w struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int64 `json:"replicas"`
		} `json:"spec"`
		Status struct {
			ObservedGeneration int64  `json:"observedGeneration"`
			ReadyReplicas      int64  `json:"readyReplicas"`
			AvailableReplicas  int64  `json:"availableReplicas"`
			Desired            *int64 `json:"desiredNumberScheduled"`
			Ready              int64  `json:"numberReady"`
		} `json:"status"`
	}
	raw, err := json.Marshal(v.Object)
	if err != nil || json.Unmarshal(raw, &w) != nil {
		return "", false
	}
	ready := max(w.Status.ReadyReplicas, w.Status.AvailableReplicas, w.Status.Ready)
	isNothingWanted := w.Spec.Replicas != nil && *w.Spec.Replicas == 0 || v.Resource == "daemonsets.apps" &&
		w.Status.ObservedGeneration == w.Metadata.Generation && (w.Status.Desired == nil || *w.Status.Desired == 0)
	switch {
	case isNothingWanted:
		return "", false
	case ready == 0:
		return fmt.Sprintf("none of its replicas was ready at the resource version %s", v.ResourceVersion), true
	case w.Status.ObservedGeneration < w.Metadata.Generation:
		return fmt.Sprintf("its controller had observed the generation %d and not %d at the resource version %s",
			w.Status.ObservedGeneration, w.Metadata.Generation, v.ResourceVersion), false
	}
	return "", false
}
