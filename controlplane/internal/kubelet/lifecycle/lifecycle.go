// Package lifecycle decides the state of a simulated Pod. [Next] gets the Pod, its history and the time. It returns the
// status that the Pod should have, and after which time to call Next once more. The package makes no requests and has
// no clock, so its tests do not wait.
//
// For example, the Pod of a Job has one container and no annotations:
//
//	0.0 s  the Pod is new: it becomes Running and Ready, and Next wants to be called after 1 s
//	1.0 s  the container exits with status 0: the Pod becomes Succeeded, and Next need not be called any more
package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// phase is where a Pod is between its creation and its removal.
type phase int

const (
	unknown      phase = iota // seen for the first time
	held                      // pending: for a moment, or as long as an annotation says
	initializing              // its init containers run
	running                   // its containers run
	backingOff                // its containers exited, and wait for their restart
	ended                     // its containers exited for good
)

const (
	// initRun is how long each init container runs.
	initRun = 100 * time.Millisecond
	// firstBackOff is the wait before a container's first restart. It doubles up to
	// lastBackOff. A real kubelet waits ten times as long.
	firstBackOff = time.Second
	lastBackOff  = 30 * time.Second
)

// History is what a node remembers of one Pod. The zero value is the history of a Pod that the
// node never saw.
type History struct {
	// IP is the Pod's address. It must be set before the first call of Next.
	IP string

	podState
	// deleted is when the node saw that the Pod is being deleted.
	deleted time.Time
}

// Node holds the fields of a Pod's status that describe its node.
type Node struct {
	IP string
}

// Decision is the next action for a Pod.
type Decision struct {
	// Status is the status to write, or nil if the Pod has it.
	Status *corev1.PodStatus
	// Remove is true when the containers of a deleted Pod have stopped: the Pod is to be
	// removed, after the status was written.
	Remove bool
	// RecheckAfter is the time after which Next must be called even if nothing changes. Zero means never.
	RecheckAfter time.Duration
}

// Next decides what to do about a Pod now.
func Next(pod *corev1.Pod, s Settings, h *History, node Node, now time.Time) Decision {
	if h.phase == unknown {
		h.restore(pod, now)
	}
	h.endAsRecorded(pod, now)
	if pod.DeletionTimestamp != nil && h.deleted.IsZero() {
		h.deleted = now
	}
	recheckAfter := h.advance(pod, s, now)
	remove := false
	if !h.deleted.IsZero() {
		remove, recheckAfter = h.terminate(pod, s, recheckAfter, now)
	}
	d := Decision{Remove: remove, RecheckAfter: recheckAfter}
	if status := h.podStatus(pod, s, h.IP, node, now); !equality.Semantic.DeepEqual(*status, pod.Status) {
		d.Status = status
	}
	return d
}

// restore derives the history of a Pod from its status. The Pod is new, or it existed before
// the node was restarted.
func (h *History) restore(pod *corev1.Pod, now time.Time) {
	h.since = now
	for _, c := range pod.Status.ContainerStatuses {
		h.restarts = max(h.restarts, c.RestartCount)
		if c.LastTerminationState.Terminated != nil {
			h.last = c.LastTerminationState
		}
		if c.State.Running != nil {
			h.since = c.State.Running.StartedAt.Time
		}
		if c.State.Terminated != nil {
			h.last = c.State
			h.exitCode = max(h.exitCode, c.State.Terminated.ExitCode)
		}
	}
	switch {
	case isEnded(pod):
		h.phase = ended
	case pod.Status.Phase == corev1.PodRunning && hasWaitingContainer(pod):
		h.phase = backingOff
	case pod.Status.Phase == corev1.PodRunning:
		h.phase = running
	default:
		h.phase = held // advance ends this phase unless the annotation asks for it
	}
}

// killedCode is the exit code of containers that were killed.
const killedCode = 137

// endAsRecorded ends the containers of a Pod whose status somebody else has ended, as an eviction does. A Pod whose
// phase is Succeeded or Failed never runs again: see
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase.
func (h *History) endAsRecorded(pod *corev1.Pod, now time.Time) {
	if h.phase == ended || !isEnded(pod) {
		return
	}
	if pod.Status.Phase == corev1.PodFailed {
		h.exitCode = killedCode
	}
	h.last = terminated(h.since, now, h.exitCode)
	h.enter(ended, now)
}

// isEnded reports whether the phase of a Pod says that its containers exited for good.
func isEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// hasWaitingContainer reports whether a container of the Pod waits for its restart.
func hasWaitingContainer(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			return true
		}
	}
	return false
}

// enter begins a phase.
func (h *History) enter(p phase, at time.Time) { h.phase, h.since = p, at }

// advance moves the Pod through all phases that have ended by now, and returns how long the current phase
// still lasts. At zero, time alone does not end the phase, or the Pod is being deleted.
func (h *History) advance(pod *corev1.Pod, s Settings, now time.Time) time.Duration {
	for {
		duration := h.phaseDuration(pod, s)
		switch {
		case duration < 0 || (!h.deleted.IsZero() && h.phase != running):
			return 0 // nothing starts any more once the Pod is being deleted
		case now.Before(h.since.Add(duration)):
			return h.timeToNextChange(s, h.since.Add(duration).Sub(now), now)
		}
		at := h.since.Add(duration)
		switch h.phase {
		case held:
			h.enter(initializing, now)
		case initializing:
			h.enter(running, at)
		case running:
			if !h.exit(pod, s, at, now) {
				return h.timeToReady(s, now)
			}
		case backingOff:
			h.restarts++
			h.enter(running, at)
		}
	}
}

// phaseDuration returns how long the current phase lasts. A negative duration means forever. It is 0 for containers
// that run without an end: see exit.
func (h *History) phaseDuration(pod *corev1.Pod, s Settings) time.Duration {
	const forever = -1
	switch h.phase {
	case held:
		if s.Outcome == Pending {
			return forever
		}
		return 0
	case initializing:
		return time.Duration(len(initContainers(pod))) * initRun
	case running:
		ends, after, _ := s.exits(pod.Spec.RestartPolicy)
		if ends {
			return after
		}
		return 0 // see exit: the Pod stays, but may have to become ready
	case backingOff:
		return backOff(h.restarts)
	default:
		return forever
	}
}

// exit ends the containers, if they end by themselves at all. It reports whether they ended.
func (h *History) exit(pod *corev1.Pod, s Settings, at, now time.Time) bool {
	ends, _, code := s.exits(pod.Spec.RestartPolicy)
	if !ends {
		return false
	}
	restarted := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && code != 0
	h.last = terminated(h.since, at, code)
	if restarted && h.deleted.IsZero() {
		h.enter(backingOff, now)
		return true
	}
	h.exitCode = code
	h.enter(ended, at)
	return true
}

// timeToNextChange returns the time until the phase ends or until the containers become ready,
// whichever comes first. left is the time until the phase ends.
func (h *History) timeToNextChange(s Settings, left time.Duration, now time.Time) time.Duration {
	if h.phase == running {
		if ready := h.timeToReady(s, now); ready > 0 {
			return min(ready, left)
		}
	}
	return left
}

// timeToReady returns the time until running containers become ready. Zero means that they are
// ready or will never be.
func (h *History) timeToReady(s Settings, now time.Time) time.Duration {
	if !s.becomesReady() {
		return 0
	}
	return max(0, h.since.Add(s.ReadyAfter).Sub(now))
}

// terminate stops the containers of a Pod that is being deleted, when their time is over. Then it reports that the Pod
// is to be removed. Otherwise it returns the time after which Next must be called. recheckAfter is that time for a Pod
// that is not being deleted.
func (h *History) terminate(
	pod *corev1.Pod, s Settings, recheckAfter time.Duration, now time.Time,
) (remove bool, next time.Duration) {
	grace := s.TerminateAfter
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = min(grace, time.Duration(*seconds)*time.Second)
	}
	if h.phase == held || h.phase == initializing || h.phase == ended {
		return true, 0 // nothing runs that could stop
	}
	left := h.deleted.Add(grace).Sub(now)
	if left > 0 {
		if recheckAfter > 0 {
			left = min(left, recheckAfter)
		}
		return false, left
	}
	if h.phase == running {
		h.last, h.exitCode = terminated(h.since, now, 0), 0
	}
	h.enter(ended, now)
	return true, 0
}

// backOff returns how long a container with this number of restarts waits for its next
// restart.
func backOff(restarts int32) time.Duration {
	wait := firstBackOff
	for range restarts {
		if wait *= 2; wait >= lastBackOff {
			return lastBackOff
		}
	}
	return wait
}
