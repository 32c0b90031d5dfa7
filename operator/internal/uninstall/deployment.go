package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// deployment is the Deployment of an installation. Its UID is empty if the Deployment does not exist.
type deployment struct {
	object
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string `json:"args"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas int `json:"readyReplicas"`
	} `json:"status"`
}

// findDeployment returns the Deployment of an installation. A Deployment of the same name that the command
// manifests did not print is an error.
func findDeployment(ctx context.Context, c cluster, i manifests.Installation) (d deployment, err error) {
	d.resource = deployments()
	if err := c.get(ctx, d.resource, i.Namespace, i.Name, kube.Full, &d); err != nil {
		return d, kube.IgnoreNotFound(err)
	}
	name := i.Namespace + "/" + i.Name
	switch labels := d.Metadata.Labels; {
	case labels[manifests.LabelManagedBy] == "Helm":
		return d, fmt.Errorf("the Deployment %s was installed by Helm: delete the objects of the program with kubectl, as long as it runs, and then run helm uninstall", name)
	case labels[manifests.LabelName] != i.Program || labels[manifests.LabelManagedBy] != manifests.ManagedBy:
		return d, fmt.Errorf("the Deployment %s has not got the labels of %s, so the command manifests did not print it: give --namespace and --name-prefix of the installation", name, i.Program)
	}
	return d, nil
}

// watched returns the namespaces that the program watches by its arguments. None means all.
func (d deployment) watched() []string {
	var names []string
	for _, container := range d.Spec.Template.Spec.Containers {
		for i, arg := range container.Args {
			rest, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), "watch-namespace")
			if value, hasValue := strings.CutPrefix(rest, "="); ok && hasValue {
				names = append(names, value)
			} else if ok && rest == "" && i+1 < len(container.Args) {
				names = append(names, container.Args[i+1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
