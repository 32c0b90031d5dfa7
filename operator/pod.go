package operator

import (
	"cmp"
	"os"
)

// ownPod returns the namespace and the name of the Pod that the program runs in. configured is the
// namespace of its configuration. Outside of a Pod it returns configured, and no name.
func ownPod(configured string) (namespace, name string) {
	namespace, name = cmp.Or(os.Getenv("POD_NAMESPACE"), configured), os.Getenv("POD_NAME")
	// The kubelet sets this variable in each container.
	if name == "" && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		name, _ = os.Hostname() // without a name of the host there is none of the Pod
	}
	return namespace, name
}
