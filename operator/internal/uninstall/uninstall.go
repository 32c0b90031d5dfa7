// Package uninstall removes an installation of a program from a cluster, and destroys no data that
// the user did not name.
//
// The order is:
//
//  1. The objects of the program's kinds, if the user wants them deleted. The program still runs, and
//     cleans up after them.
//  2. The Deployment with its Pods.
//  3. All other objects with the labels of the installation, of whatever kind.
//  4. The CustomResourceDefinitions, unless somebody else needs them.
//
// A Namespace is never deleted. The user gets the command that deletes it. Each step that fails ends the
// command. The next call goes on from there.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Options describe what to remove.
type Options struct {
	manifests.Installation
	// Watched holds the namespaces that the program watches. If it is empty, the arguments in the
	// Deployment name them.
	Watched []string
	// Kinds are the resources that the program defines.
	Kinds []kube.Resource
	// Finalizers are the finalizers that the program adds to objects.
	Finalizers []string
	// DeleteObjects deletes the objects of Kinds too. AbandonCleanup removes Finalizers from them, so
	// that nobody cleans up. DryRun changes nothing.
	DeleteObjects, AbandonCleanup, DryRun bool
	// Out gets a line for each step.
	Out io.Writer
}

// errStopped is the error of a command that has changed nothing.
var errStopped = errors.New("nothing was removed")

// Run removes the installation. The error contains what is left, and why.
func Run(ctx context.Context, client *kube.Client, o Options) error {
	c := cluster{client: client, out: o.Out, isDryRun: o.DryRun}
	d, err := findDeployment(ctx, c, o.Installation)
	if err != nil {
		return err
	}
	if len(o.Watched) == 0 {
		o.Watched = d.watched()
	}
	for _, step := range []func(context.Context, cluster, deployment, Options) error{removeObjects, removeInstallation, removeDefinitions} {
		if err := step(ctx, c, d, o); err != nil {
			return err
		}
	}
	namespace, exists, err := c.find(ctx, namespaces(), "", o.Namespace)
	if exists { // only the user knows what else the namespace holds
		fmt.Fprintf(c.out, "kept namespaces %[1]s, in which others may have objects. This command deletes it with everything in it:\n  kubectl delete namespace %[1]s\n", namespace.Metadata.Name)
	}
	return err
}

// removeInstallation removes the objects that have the labels of the installation, the Deployment and
// its Pods first.
func removeInstallation(ctx context.Context, c cluster, d deployment, o Options) error {
	if d.Metadata.UID != "" {
		if err := c.remove(ctx, d.object); err != nil {
			return err
		}
	}
	resources, err := kube.DiscoverAll(ctx, c.client)
	if err != nil {
		fmt.Fprintf(c.out, "left the objects of some resources as they are: %v\n", err)
	}
	for _, r := range resources {
		if isLeftOut(r) {
			continue
		}
		objects, err := c.list(ctx, kube.Stream{Resource: r, LabelSelector: o.Selector()})
		if err != nil {
			fmt.Fprintf(c.out, "left %s as they are: %v\n", r, err)
			continue
		}
		for _, each := range objects {
			// The labels of a Service are also those of its EndpointSlices, which go with it.
			if len(each.Metadata.OwnerReferences) > 0 || each.Metadata.UID == d.Metadata.UID {
				continue
			}
			if err := c.remove(ctx, each); err != nil {
				return err
			}
		}
	}
	l, exists, err := c.find(ctx, lease.Resource(), o.Namespace, o.Program)
	if exists {
		return c.remove(ctx, l)
	}
	return err
}

// isLeftOut reports whether the removal by labels leaves out a resource: definitions have a step of their
// own, namespaces stay, and Events, the Endpoints of Services and the metrics of Pods go by themselves.
func isLeftOut(r kube.Resource) bool {
	return r.GroupResource() == manifests.DefinitionResource().GroupResource() || r.GroupResource() == namespaces().GroupResource() ||
		r.Plural == "events" || r.Group == "metrics.k8s.io" || r.Group == "" && r.Plural == "endpoints"
}

// removeDefinitions removes the CustomResourceDefinitions of the program, unless somebody else needs
// them.
func removeDefinitions(ctx context.Context, c cluster, _ deployment, o Options) error {
	other, err := otherInstallation(ctx, c, o.Installation)
	if err != nil {
		return err
	}
	for _, r := range o.Kinds {
		definition, exists, err := c.find(ctx, manifests.DefinitionResource(), "", r.String())
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		reason := ""
		switch {
		case definition.Metadata.Labels[manifests.LabelManagedBy] != manifests.ManagedBy:
			reason = "it has not got the label of the command manifests, so somebody else applied it"
		case other != "":
			reason = "the program is also installed as " + other
		default:
			objects, err := c.listKinds(ctx, []kube.Resource{r}, nil)
			if err != nil {
				return err
			}
			if o.DryRun && o.DeleteObjects { // the objects that would be deleted do not count
				objects = slices.DeleteFunc(objects, func(x object) bool {
					return len(o.Watched) == 0 || x.Metadata.Namespace == "" || slices.Contains(o.Watched, x.Metadata.Namespace)
				})
			}
			if len(objects) > 0 {
				reason = "objects exist:" + countsOf(objects)
			}
		}
		if reason != "" {
			fmt.Fprintf(c.out, "kept %s: %s\n", definition, reason)
		} else if err := c.remove(ctx, definition); err != nil {
			return err
		}
	}
	return nil
}

// otherInstallation returns the name of another Deployment of the program, or nothing.
func otherInstallation(ctx context.Context, c cluster, i manifests.Installation) (string, error) {
	all, err := c.list(ctx, kube.Stream{Resource: deployments(), LabelSelector: manifests.LabelName + "=" + i.Program})
	if err != nil {
		return "", fmt.Errorf("look for other installations of the program: %w", err)
	}
	for _, d := range all {
		if d.Metadata.Namespace != i.Namespace || d.Metadata.Name != i.Name {
			return d.String(), nil
		}
	}
	return "", nil
}

func deployments() kube.Resource {
	return kube.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments"}
}

func namespaces() kube.Resource {
	return kube.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
}
