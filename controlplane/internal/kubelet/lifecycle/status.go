package lifecycle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status returns the whole status that the Pod should have now. It keeps what others wrote,
// such as the conditions of readiness gates.
func (h *History) status(pod *corev1.Pod, s Settings, node Node, now time.Time) *corev1.PodStatus {
	status := pod.Status.DeepCopy()
	status.ObservedGeneration = pod.Generation
	status.Phase = h.podPhase()
	if status.StartTime == nil {
		status.StartTime = stamp(now)
	}
	status.HostIP, status.HostIPs = node.IP, []corev1.HostIP{{IP: node.IP}}
	status.PodIP = h.IP
	if pod.Spec.HostNetwork {
		status.PodIP = node.IP
	}
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}

	ready := h.areContainersReady(s, now)
	status.InitContainerStatuses = h.initStatuses(pod, *status.StartTime)
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, h.containerStatus(pod, c, ready))
	}
	status.EphemeralContainerStatuses = nil
	for _, c := range pod.Spec.EphemeralContainers {
		status.EphemeralContainerStatuses = append(status.EphemeralContainerStatuses,
			h.auxiliaryStatus(pod, corev1.Container(c.EphemeralContainerCommon), *status.StartTime))
	}
	h.setConditions(pod, status, ready, now)
	return status
}

func (h *History) podPhase() corev1.PodPhase {
	switch {
	case h.phase == held || h.phase == initializing:
		return corev1.PodPending
	case h.phase == ended && h.exitCode == 0:
		return corev1.PodSucceeded
	case h.phase == ended:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

func (h *History) areContainersReady(s Settings, now time.Time) bool {
	return h.phase == running && s.becomesReady() && !now.Before(h.since.Add(s.ReadyAfter))
}

// containerStatus returns the status of an ordinary container. All ordinary containers of a
// Pod have the same fate.
func (h *History) containerStatus(pod *corev1.Pod, c corev1.Container, ready bool) corev1.ContainerStatus {
	status := newStatus(c)
	status.RestartCount = h.restarts
	status.Started = new(h.phase == running)
	status.Ready = ready
	switch h.phase {
	case held:
		status.State = waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q (simulated: annotation %s)", c.Image, OutcomeAnnotation))
		return status
	case initializing:
		status.State = waiting("PodInitializing", "")
		return status
	case running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: *stamp(h.since)}
		status.LastTerminationState = h.lastState(pod, c.Name, h.restarts-1)
	case backingOff:
		status.State = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %v restarting failed container=%s (simulated)", backOff(h.restarts), c.Name))
		status.LastTerminationState = h.lastState(pod, c.Name, h.restarts)
	case ended:
		status.State = h.lastState(pod, c.Name, h.restarts)
	}
	status.ImageID = imageID(c.Image)
	status.ContainerID = containerID(pod, c.Name, h.restarts)
	return status
}

// lastState returns how the container ended the last time, which was after that many
// restarts.
func (h *History) lastState(pod *corev1.Pod, container string, restarts int32) corev1.ContainerState {
	if h.last.Terminated == nil {
		return corev1.ContainerState{}
	}
	state := h.last.DeepCopy()
	state.Terminated.ContainerID = containerID(pod, container, restarts)
	return *state
}

// initStatuses returns the statuses of the init containers, sidecars included.
func (h *History) initStatuses(pod *corev1.Pod, started metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i, c := range pod.Spec.InitContainers {
		statuses = append(statuses, h.initStatus(pod, c, i == 0, started))
	}
	return statuses
}

func (h *History) initStatus(pod *corev1.Pod, c corev1.Container, first bool, started metav1.Time) corev1.ContainerStatus {
	if isSidecar(c) {
		return h.auxiliaryStatus(pod, c, started)
	}
	status := newStatus(c)
	status.Started = new(false)
	switch {
	case h.phase == held || (h.phase == initializing && !first):
		status.State = waiting("PodInitializing", "")
		return status
	case h.phase == initializing:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
		status.Started = new(true)
	default:
		status.State = terminated(started.Time, started.Time, 0)
		status.State.Terminated.ContainerID = containerID(pod, c.Name, 0)
		status.Ready = true
	}
	status.ImageID = imageID(c.Image)
	status.ContainerID = containerID(pod, c.Name, 0)
	return status
}

// auxiliaryStatus returns the status of a sidecar or an ephemeral container, which runs from
// the Pod's start to its end.
func (h *History) auxiliaryStatus(pod *corev1.Pod, c corev1.Container, started metav1.Time) corev1.ContainerStatus {
	status := newStatus(c)
	status.Started = new(false)
	switch h.phase {
	case held:
		status.State = waiting("PodInitializing", "")
		return status
	case ended:
		status.State = h.lastState(pod, c.Name, 0)
		if status.State.Terminated != nil {
			status.State.Terminated.StartedAt = started
			status.State.Terminated.ExitCode, status.State.Terminated.Reason = 0, "Completed"
		}
	default:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
		status.Started = new(true)
		status.Ready = true
	}
	status.ImageID = imageID(c.Image)
	status.ContainerID = containerID(pod, c.Name, 0)
	return status
}

func newStatus(c corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name:               c.Name,
		Image:              c.Image,
		AllocatedResources: c.Resources.Requests.DeepCopy(),
		Resources:          &corev1.ResourceRequirements{Limits: c.Resources.Limits.DeepCopy(), Requests: c.Resources.Requests.DeepCopy()},
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(started, finished time.Time, code int32) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: *stamp(started), FinishedAt: *stamp(finished),
	}}
}

// stamp returns a time as the API keeps it: to the second.
func stamp(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t).Rfc3339Copy())
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// initContainers returns the init containers that must end before the others start, which
// excludes sidecars.
func initContainers(pod *corev1.Pod) []corev1.Container {
	var containers []corev1.Container
	for _, c := range pod.Spec.InitContainers {
		if !isSidecar(c) {
			containers = append(containers, c)
		}
	}
	return containers
}

func names(containers []corev1.Container) string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return "[" + strings.Join(names, " ") + "]"
}
