// Package uninstall removes an installation of a program from a cluster, and destroys no data that
// the user did not name.
//
// The order is: the objects of the program's kinds, if the user wants them deleted, while the program
// still runs and cleans up after them; the Deployment with its Pods; all other objects with the labels
// of the installation, of whatever kind; the CustomResourceDefinitions; the Namespace. Each step that
// fails ends the command. The next call goes on from there.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Options describe what to remove.
type Options struct {
	// Program is the name of the program, and Name is the name of the objects of the installation.
	Program, Name, Namespace string
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

// Run removes the installation. The error contains what is left, and why.
func Run(ctx context.Context, client *kube.Client, o Options) error {
	u := &uninstaller{Options: o, client: client}
	deployment, err := u.deployment(ctx)
	if err != nil {
		return err
	}
	if len(u.Watched) == 0 && deployment != nil {
		u.Watched = deployment.watched()
	}
	if err := u.removeObjects(ctx, deployment); err != nil {
		return err
	}
	if err := u.removeInstallation(ctx, deployment); err != nil {
		return err
	}
	if err := u.removeDefinitions(ctx); err != nil {
		return err
	}
	return u.removeNamespace(ctx)
}

// uninstaller removes one installation.
type uninstaller struct {
	Options
	client *kube.Client
	// resources are the resources that the server serves, after removeInstallation. discoveryErr is why
	// some are missing, or nil.
	resources    []kube.Resource
	discoveryErr error
	// deletedUIDs are the uids of what was deleted. What these objects own goes by itself.
	deletedUIDs []string
}

// metadata is the metadata of an object.
type metadata = metav1.PartialObjectMetadata

// period is the time between two looks at what is being deleted.
const period = 500 * time.Millisecond

// deployments, namespaces and leases return the resources that have steps of their own.
func deployments() kube.Resource {
	return kube.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments"}
}

func namespaces() kube.Resource {
	return kube.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
}

func leases() kube.Resource {
	return kube.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, Plural: "leases"}
}

// removeInstallation removes the objects that have the labels of the installation, the Deployment and
// its Pods first.
func (u *uninstaller) removeInstallation(ctx context.Context, deployment *deployment) error {
	if deployment != nil {
		if err := u.remove(ctx, deployments(), &metadata{ObjectMeta: deployment.Metadata}); err != nil {
			return err
		}
	}
	u.resources, u.discoveryErr = kube.DiscoverAll(ctx, u.client)
	selector := manifests.LabelInstance + "=" + u.Name + "," + manifests.LabelNamespace + "=" + u.Namespace
	for _, r := range u.resources {
		if isDerived(r) || r.GroupResource() == manifests.DefinitionResource().GroupResource() || r.GroupResource() == namespaces().GroupResource() {
			continue
		}
		objects, err := u.list(ctx, kube.Stream{Resource: r, LabelSelector: selector})
		if err != nil {
			fmt.Fprintf(u.Out, "left %s as they are: %v\n", r, err)
			continue
		}
		for _, o := range objects {
			// The labels of a Service are also those of its EndpointSlices, which go with it.
			if len(o.OwnerReferences) > 0 || r == deployments() && deployment != nil && o.UID == deployment.Metadata.UID {
				continue
			}
			if err := u.remove(ctx, r, o); err != nil {
				return err
			}
		}
	}
	lease, err := u.get(ctx, leases(), u.Namespace, u.Program)
	if err != nil || lease == nil {
		return err
	}
	return u.remove(ctx, leases(), lease)
}

// remove deletes an object. It returns when the object, and the Pods of a Deployment, are gone.
func (u *uninstaller) remove(ctx context.Context, r kube.Resource, o *metadata) error {
	name := nameOf(r, o)
	if u.DryRun {
		u.deletedUIDs = append(u.deletedUIDs, string(o.UID))
		fmt.Fprintf(u.Out, "would delete %s\n", name)
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if r == deployments() {
		policy = metav1.DeletePropagationForeground
	}
	if err := u.delete(ctx, r, o, policy); err != nil {
		return err
	}
	for blocked := 0; ; blocked++ {
		now, err := u.get(ctx, r, o.Namespace, o.Name)
		if err != nil {
			return err
		}
		if now == nil || now.UID != o.UID {
			break
		}
		if blocked > 0 && blocked%20 == 0 {
			fmt.Fprintf(u.Out, "waiting for the end of %s, with the finalizers %v\n", name, now.Finalizers)
		}
		if err := clock.SleepReal(ctx, period); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", name, err)
		}
	}
	fmt.Fprintf(u.Out, "deleted %s\n", name)
	return nil
}

// delete asks the server to delete exactly this object.
func (u *uninstaller) delete(ctx context.Context, r kube.Resource, o *metadata, policy metav1.DeletionPropagation) error {
	u.deletedUIDs = append(u.deletedUIDs, string(o.UID))
	body, err := kube.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &o.UID},
		PropagationPolicy: &policy,
	})
	if err == nil {
		_, err = u.client.Do(ctx, &kube.Request{
			Verb: kube.VerbDelete, Resource: r, Namespace: o.Namespace, Name: o.Name, Body: body,
			Preconditions: kube.Preconditions{UID: o.UID},
		})
	}
	return kube.IgnoreNotFound(err)
}

// get returns the metadata of an object, or nil if it does not exist.
func (u *uninstaller) get(ctx context.Context, r kube.Resource, namespace, name string) (*metadata, error) {
	response, err := u.client.Do(ctx, &kube.Request{
		Verb: kube.VerbGet, Resource: r, Namespace: namespace, Name: name, Representation: kube.MetadataOnly,
	})
	if kube.IsNotFound(err) || kube.IsNoResource(err) {
		return nil, nil //nolint:nilnil // the object does not exist
	}
	if err != nil {
		return nil, err
	}
	o := new(metadata)
	return o, kube.Unmarshal(response.Body, o)
}

// list returns the metadata of the objects of a stream. A resource that the server does not serve or
// cannot list has no objects.
func (u *uninstaller) list(ctx context.Context, s kube.Stream) ([]*metadata, error) {
	s.Representation = kube.MetadataOnly
	var all []*metadata
	for page, err := range s.Pages(ctx, u.client) {
		if e, ok := kube.AsError(err); ok && (kube.IsNoResource(err) || e.Code == 405) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			o := new(metadata)
			if err := kube.Unmarshal(item, o); err != nil {
				return nil, fmt.Errorf("decode the metadata of one of %s: %w", s, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// nameOf returns how messages name an object.
func nameOf(r kube.Resource, o *metadata) string {
	if o.Namespace == "" {
		return r.String() + " " + o.Name
	}
	return r.String() + " " + o.Namespace + "/" + o.Name
}

// deployment is the Deployment of an installation.
type deployment struct {
	// Metadata is not embedded, because that would add methods to the binary.
	Metadata metav1.ObjectMeta `json:"metadata"`

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

// deployment returns the Deployment of the installation, or nil if it does not exist.
func (u *uninstaller) deployment(ctx context.Context) (*deployment, error) {
	response, err := u.client.Do(ctx, &kube.Request{Verb: kube.VerbGet, Resource: deployments(), Namespace: u.Namespace, Name: u.Name})
	if kube.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the Deployment does not exist
	}
	if err != nil {
		return nil, err
	}
	d := new(deployment)
	if err := kube.Unmarshal(response.Body, d); err != nil {
		return nil, fmt.Errorf("decode the Deployment %s/%s: %w", u.Namespace, u.Name, err)
	}
	labels, name := d.Metadata.Labels, u.Namespace+"/"+u.Name
	switch {
	case labels[manifests.LabelManagedBy] == "Helm":
		return nil, fmt.Errorf("the Deployment %s was installed by Helm: delete the objects of the program with kubectl, as long as it runs, and then run helm uninstall", name)
	case labels[manifests.LabelName] != u.Program || labels[manifests.LabelManagedBy] != manifests.ManagedBy:
		return nil, fmt.Errorf("the Deployment %s has not got the labels of %s, so the command manifests did not print it: give --namespace and --name-prefix of the installation", name, u.Program)
	}
	return d, nil
}

// watched returns the namespaces that the program watches by its arguments. None means all.
func (d *deployment) watched() []string {
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

// errStopped is the error of a command that has changed nothing.
var errStopped = errors.New("nothing was removed")
