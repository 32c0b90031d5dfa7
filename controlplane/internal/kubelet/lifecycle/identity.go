package lifecycle

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

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
