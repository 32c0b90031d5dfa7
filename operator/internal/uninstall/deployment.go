package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// findDeployment returns the Deployment of an installation. Without the Deployment it returns an object without a
// UID. A Deployment of the same name that the command manifests did not print is an error.
func findDeployment(ctx context.Context, c *cluster, i *manifests.Installation) (*clusterread.Object, error) {
	d, exists, err := clusterread.Find(ctx, c.client, clusterread.Deployments(), i.Namespace, i.Name)
	if err != nil {
		return nil, err
	}
	if !exists {
		return &clusterread.Object{
			Resource: clusterread.Deployments(), Metadata: clusterread.Metadata{Namespace: i.Namespace, Name: i.Name},
		}, nil
	}
	switch labels := d.Metadata.Labels; {
	case labels[manifests.LabelManagedBy] == "Helm":
		return nil, fmt.Errorf("%s was installed by Helm: delete the objects of the program with kubectl, as long as it runs, and then run helm uninstall", d)
	case labels[manifests.LabelName] != i.Program || labels[manifests.LabelManagedBy] != manifests.ManagedBy:
		return nil, fmt.Errorf("%s has not got the labels of %s, so the command manifests did not print it: give --namespace and --name-prefix of the installation", d, i.Program)
	}
	return d, i.CheckOwner(d)
}

// removeDeployment removes the Deployment of the installation with its Pods.
func removeDeployment(ctx context.Context, c *cluster, f *findings) error {
	if f.deployment.Metadata.UID == "" {
		return nil
	}
	return c.remove(ctx, f.deployment)
}

// otherDeployments returns the Deployments of the other installations of the program.
func otherDeployments(ctx context.Context, c *cluster, i *manifests.Installation) ([]*clusterread.Object, error) {
	return clusterread.List(ctx, c.client, wire.Stream{
		Resource: clusterread.Deployments(), LabelSelector: manifests.LabelName + "=" + i.Program,
	}, func(d *clusterread.Object) bool {
		return manifests.IsPrinted(d) && (d.Metadata.Namespace != i.Namespace || d.Metadata.Name != i.Name)
	})
}

// watches reports whether the program of a Deployment watches the namespace of an object. A program that watches some
// namespaces watches what is outside of namespaces too.
func watches(deployment, o *clusterread.Object) bool {
	return isIn(flagValues(deployment, "watch-namespace"), o)
}

// isIn reports whether an object is in one of these namespaces, or outside of namespaces. No namespaces stand for all.
func isIn(namespaces []string, o *clusterread.Object) bool {
	return len(namespaces) == 0 || o.Metadata.Namespace == "" || slices.Contains(namespaces, o.Metadata.Namespace)
}

// flagValues returns the different values of a flag in the arguments of a Deployment.
func flagValues(deployment *clusterread.Object, flag string) (values []string) {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for i, arg := range container.Args {
			name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if !hasValue && i+1 < len(container.Args) {
				value = container.Args[i+1]
			}
			if name == flag && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return values
}
