package lifecycle

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podState is what the status of a Pod is made of.
type podState struct {
	phase phase
	// since is when the phase began.
	since    time.Time
	restarts int32
	// last is how the containers ended the last time, and exitCode how they ended for good.
	last     corev1.ContainerState
	exitCode int32
}

// podStatus returns the whole status that the Pod should have now. It keeps what others wrote,
// such as the conditions of readiness gates.
func (s podState) podStatus(pod *corev1.Pod, settings Settings, ip string, node Node, now time.Time) *corev1.PodStatus {
	status := pod.Status.DeepCopy()
	status.ObservedGeneration = pod.Generation
	status.Phase = s.podPhase()
	if status.StartTime == nil {
		status.StartTime = stamp(now)
	}
	status.HostIP, status.HostIPs = node.IP, []corev1.HostIP{{IP: node.IP}}
	status.PodIP = ip
	if pod.Spec.HostNetwork {
		status.PodIP = node.IP
	}
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}

	ready := s.areContainersReady(settings, now)
	status.InitContainerStatuses = s.initStatuses(pod, *status.StartTime)
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, s.containerStatus(pod, c, ready))
	}
	status.EphemeralContainerStatuses = nil
	for _, c := range pod.Spec.EphemeralContainers {
		status.EphemeralContainerStatuses = append(status.EphemeralContainerStatuses,
			s.auxiliaryStatus(pod, corev1.Container(c.EphemeralContainerCommon), *status.StartTime))
	}
	s.setConditions(pod, status, ready, now)
	return status
}

func (s podState) podPhase() corev1.PodPhase {
	switch {
	case s.phase == held || s.phase == initializing:
		return corev1.PodPending
	case s.phase == ended && s.exitCode == 0:
		return corev1.PodSucceeded
	case s.phase == ended:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

func (s podState) areContainersReady(settings Settings, now time.Time) bool {
	return s.phase == running && settings.becomesReady() && !now.Before(s.since.Add(settings.ReadyAfter))
}

// setConditions sets the conditions that a kubelet owns.
func (s podState) setConditions(pod *corev1.Pod, status *corev1.PodStatus, ready bool, now time.Time) {
	set := func(kind corev1.PodConditionType, is bool, reason, message string) {
		setCondition(status, corev1.PodCondition{
			Type: kind, Status: conditionStatus(is), Reason: reason, Message: message, ObservedGeneration: pod.Generation,
		}, now)
	}
	set(corev1.PodReadyToStartContainers, s.phase != ended, "", "")

	initialized := s.phase != initializing && (s.phase != held || len(initContainers(pod)) == 0)
	switch {
	case !initialized:
		set(corev1.PodInitialized, false,
			"ContainersNotInitialized", "containers with incomplete status: "+names(initContainers(pod)))
	case status.Phase == corev1.PodSucceeded:
		set(corev1.PodInitialized, true, "PodCompleted", "")
	default:
		set(corev1.PodInitialized, true, "", "")
	}

	reason, message := "", ""
	switch {
	case ready:
	case status.Phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		reason = "PodFailed"
	default:
		reason, message = "ContainersNotReady", "containers with unready status: "+names(pod.Spec.Containers)
	}
	set(corev1.ContainersReady, ready, reason, message)
	if closed := closedGates(pod); ready && len(closed) > 0 {
		ready, reason = false, "ReadinessGatesNotReady"
		message = fmt.Sprintf("conditions that are not True: %s", strings.Join(closed, ", "))
	}
	set(corev1.PodReady, ready, reason, message)

	// The scheduler sets it, but not for a Pod that names its node.
	set(corev1.PodScheduled, true, "", "")
}

// containerStatus returns the status of an ordinary container. All ordinary containers of a
// Pod are in the same state.
func (s podState) containerStatus(pod *corev1.Pod, c corev1.Container, ready bool) corev1.ContainerStatus {
	status := newStatus(c)
	status.RestartCount = s.restarts
	status.Started = new(s.phase == running)
	status.Ready = ready
	switch s.phase {
	case held:
		status.State = waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q (simulated: annotation %s)",
			c.Image, OutcomeAnnotation))
		return status
	case initializing:
		status.State = waiting("PodInitializing", "")
		return status
	case running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: *stamp(s.since)}
		status.LastTerminationState = s.lastState(pod, c.Name, s.restarts-1)
	case backingOff:
		status.State = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %v restarting failed container=%s (simulated)",
			backOff(s.restarts), c.Name))
		status.LastTerminationState = s.lastState(pod, c.Name, s.restarts)
	case ended:
		status.State = s.lastState(pod, c.Name, s.restarts)
	}
	status.ImageID = imageID(c.Image)
	status.ContainerID = containerID(pod, c.Name, s.restarts)
	return status
}

// lastState returns the end of the container after that many restarts.
func (s podState) lastState(pod *corev1.Pod, container string, restarts int32) corev1.ContainerState {
	if s.last.Terminated == nil {
		return corev1.ContainerState{}
	}
	state := s.last.DeepCopy()
	state.Terminated.ContainerID = containerID(pod, container, restarts)
	return *state
}

// initStatuses returns the statuses of the init containers, sidecars included.
func (s podState) initStatuses(pod *corev1.Pod, started metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i, c := range pod.Spec.InitContainers {
		statuses = append(statuses, s.initStatus(pod, c, i == 0, started))
	}
	return statuses
}

func (s podState) initStatus(
	pod *corev1.Pod, c corev1.Container, first bool, started metav1.Time,
) corev1.ContainerStatus {
	if isSidecar(c) {
		return s.auxiliaryStatus(pod, c, started)
	}
	status := newStatus(c)
	status.Started = new(false)
	switch {
	case s.phase == held || (s.phase == initializing && !first):
		status.State = waiting("PodInitializing", "")
		return status
	case s.phase == initializing:
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
func (s podState) auxiliaryStatus(pod *corev1.Pod, c corev1.Container, started metav1.Time) corev1.ContainerStatus {
	status := newStatus(c)
	status.Started = new(false)
	switch s.phase {
	case held:
		status.State = waiting("PodInitializing", "")
		return status
	case ended:
		status.State = s.lastState(pod, c.Name, 0)
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
		Resources: &corev1.ResourceRequirements{
			Limits: c.Resources.Limits.DeepCopy(), Requests: c.Resources.Requests.DeepCopy(),
		},
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

// initContainers returns the init containers that must end before the others start. Sidecars are not among
// them.
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

// Scheme is the name of the made-up container runtime. It begins its version, container IDs
// and image IDs.
const Scheme = "simulated://"

// containerID returns an ID that is unique for each start of a container.
func containerID(pod *corev1.Pod, container string, restarts int32) string {
	return fmt.Sprintf("%s%x", Scheme, sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, container, restarts)))
}

// imageID returns an ID that depends on the image's name alone: nobody looked at its content.
func imageID(image string) string {
	return fmt.Sprintf("%s%s@sha256:%x", Scheme, image, sha256.Sum256([]byte(image)))
}
