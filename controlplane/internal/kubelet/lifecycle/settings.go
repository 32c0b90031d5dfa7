package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Prefix begins the names of the annotations that control the simulation of a Pod.
const Prefix = "simulate.yare.dev/"

// The annotations.
const (
	// OutcomeAnnotation is the outcome of the Pod: fail, crash-loop or pending.
	OutcomeAnnotation = Prefix + "outcome"
	// ReadyAfterAnnotation is the time from a container's start until it is ready.
	ReadyAfterAnnotation = Prefix + "ready-after"
	// CompleteAfterAnnotation is the time from a container's start until it exits.
	CompleteAfterAnnotation = Prefix + "complete-after"
	// TerminateAfterAnnotation is the time from the Pod's deletion until its containers
	// have stopped. The grace period cuts it short.
	TerminateAfterAnnotation = Prefix + "terminate-after"
	// ExitCodeAnnotation is the exit status of the containers.
	ExitCodeAnnotation = Prefix + "exit-code"
)

// Outcome is how the containers of a Pod end.
type Outcome string

// The outcomes.
const (
	Succeed   Outcome = ""           // run, and complete if the restart policy lets it
	Fail      Outcome = "fail"       // exit with an error
	CrashLoop Outcome = "crash-loop" // exit with an error soon after each start
	Pending   Outcome = "pending"    // never start
)

const (
	// defaultRun is how long the containers of a Pod run that is expected to end.
	defaultRun = time.Second
	// crashRun is how long a container runs that crashes.
	crashRun = 300 * time.Millisecond
	// defaultTerminate is how long containers take to stop.
	defaultTerminate = 500 * time.Millisecond
)

// Settings are the settings that the annotations of a Pod ask for.
type Settings struct {
	Outcome        Outcome
	ReadyAfter     time.Duration
	CompleteAfter  *time.Duration
	TerminateAfter time.Duration
	ExitCode       *int32
}

// Problem is an annotation that cannot be used. The default is used in its place.
type Problem struct {
	Annotation, Value, Want string
}

func (p Problem) String() string {
	return fmt.Sprintf("annotation %s: %q is ignored: want %s", p.Annotation, p.Value, p.Want)
}

// ParseSettings returns the settings in the annotations of a Pod, and the problems of the annotations, in
// the order of their names.
func ParseSettings(pod *corev1.Pod) (Settings, []Problem) {
	s := Settings{TerminateAfter: defaultTerminate}
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		value := pod.Annotations[name]
		if want := s.set(name, value); want != "" {
			problems = append(problems, Problem{Annotation: name, Value: value, Want: want})
		}
	}
	return s, problems
}

// set sets the setting of one annotation, or returns the form that the annotation should have.
func (s *Settings) set(name, value string) (want string) {
	const duration = "a duration, such as 3s or 1m30s"
	switch name {
	case OutcomeAnnotation:
		switch o := Outcome(value); o {
		case Succeed, Fail, CrashLoop, Pending:
			s.Outcome = o
		default:
			return "fail, crash-loop or pending"
		}
	case ReadyAfterAnnotation, CompleteAfterAnnotation, TerminateAfterAnnotation:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return duration
		}
		switch name {
		case ReadyAfterAnnotation:
			s.ReadyAfter = d
		case CompleteAfterAnnotation:
			s.CompleteAfter = &d
		case TerminateAfterAnnotation:
			s.TerminateAfter = d
		}
	case ExitCodeAnnotation:
		code, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return "a number from 0 to 255"
		}
		exit := int32(code)
		s.ExitCode = &exit
	default:
		return "one of outcome, ready-after, complete-after, terminate-after and exit-code after " + Prefix
	}
	return ""
}

// exits reports whether the containers of a Pod end by themselves. If they do, it returns the time and the
// status of the end.
func (s Settings) exits(policy corev1.RestartPolicy) (ends bool, after time.Duration, code int32) {
	after = defaultRun
	if s.Outcome == CrashLoop {
		after = crashRun
	}
	if s.CompleteAfter != nil {
		after = *s.CompleteAfter
	}
	failing := s.Outcome == Fail || s.Outcome == CrashLoop
	if failing {
		code = 1
	}
	if s.ExitCode != nil && (*s.ExitCode != 0 || !failing) {
		code = *s.ExitCode
	}
	ends = failing || s.CompleteAfter != nil || s.ExitCode != nil || policy != corev1.RestartPolicyAlways
	return ends, after, code
}

// becomesReady reports whether the containers are ever ready. Containers that are to fail are
// never ready. Otherwise a Deployment of them would be available now and then.
func (s Settings) becomesReady() bool { return s.Outcome != Fail && s.Outcome != CrashLoop }
