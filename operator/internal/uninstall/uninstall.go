// Package uninstall removes an installation of a program from a cluster, and destroys no data that
// the user did not name.
//
// First it looks at everything that could stop it: objects of the program's kinds, finalizers of the program on any
// object, and what belongs to another installation. Then the user confirms. The order of the removal is:
//
//  1. The webhook configurations. So no write is refused if the program does not run.
//  2. The objects of the program's kinds, if the user wants them deleted. The program still runs, and
//     cleans up after them.
//  3. The conversions of the program's kinds: another installation takes them over, or all objects are stored in one
//     version, which is the only one that is served then.
//  4. The webhook configurations again, which the leader of a program that runs has made again. Before, the program
//     loses its permissions outside of its namespace.
//  5. The Deployment with its Pods.
//  6. The finalizers of the program on objects that stay, if the user wants that.
//  7. All other objects with the labels of the installation, of whatever kind, and its Lease.
//  8. The CustomResourceDefinitions, unless somebody else needs them.
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
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/live"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Options describe what to remove.
type Options struct {
	manifests.Installation
	// Watched holds the namespaces that the program watches. If it is empty, the arguments in the
	// Deployment name them.
	Watched []string
	// Kinds are the resources that the program defines. Reconciled are the resources that it reconciles, whoever
	// defines them.
	Kinds, Reconciled []wire.Resource
	// Finalizers are the finalizers that the program adds to objects of Reconciled.
	Finalizers []string
	// HasWebhooks is true for a program with webhooks. An earlier release may have had some in any case.
	HasWebhooks bool
	// LeaseNamespace and LeaseName identify the Lease of the program. If they are empty, the arguments in the Deployment
	// name it.
	LeaseNamespace, LeaseName string
	// DeleteObjects deletes the objects of Kinds too. AbandonCleanup removes Finalizers from them, so
	// that nobody cleans up. RemoveFinalizers removes Finalizers from all objects that stay and that no other
	// installation watches. DryRun changes nothing.
	DeleteObjects, AbandonCleanup, RemoveFinalizers, DryRun bool
	// Timeout is how long each wait may take: for the end of an object, and for the next end of a cleanup.
	Timeout time.Duration
	// Confirm returns an error unless the user agrees. It is called before the first change.
	Confirm func(context.Context) error
	// Migrate stores all objects of the program's kinds in their storage version.
	Migrate func(context.Context) error
	// Out gets a line for each step.
	Out io.Writer

	// ownKinds and reconciled are Kinds and Reconciled in the versions that the server serves.
	ownKinds, reconciled []wire.Resource
	// others are the Deployments of other installations of the program. Their objects are no concern of this one.
	others []*live.Object
}

// errStopped is the error of a command that has changed nothing.
var errStopped = errors.New("nothing was removed")

// Run removes the installation. The error contains what is left, and why.
func Run(ctx context.Context, client *kube.Client, o *Options) error {
	c := &cluster{client: client, out: o.Out, isDryRun: o.DryRun, limit: o.Timeout}
	d, objects, err := inspect(ctx, c, o)
	if err == nil && !o.DryRun {
		err = o.Confirm(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	steps := []func() error{
		func() error { return removeConfigurations(ctx, c, o) },
		func() error { return removeObjects(ctx, c, o, objects) },
		func() error { return handOverConversions(ctx, c, o, d) },
		func() error { return retireConfigurations(ctx, c, o, d) },
		func() error {
			if d.Metadata.UID == "" {
				return nil
			}
			return c.remove(ctx, d)
		},
		func() error { // a request of the leader may have been under way
			if o.DryRun {
				return nil
			}
			return removeConfigurations(ctx, c, o)
		},
		func() error { return removeConversions(ctx, c, o) },
		func() error { return removeFinalizers(ctx, c, o) },
		func() error { return removeLabelled(ctx, c, o, d) },
		func() error { return removeWebhookSecret(ctx, c, o) },
		func() error { return removeLease(ctx, c, o, d) },
		func() error { return removeDefinitions(ctx, c, o) },
		func() error {
			namespace, exists, err := live.Find(ctx, client, namespaces(), "", o.Namespace)
			if exists { // only the user knows what else the namespace holds
				fmt.Fprintf(c.out, "kept namespaces %[1]s, in which others may have objects. This command deletes it with everything in it:\n  kubectl delete namespace %[1]s\n", namespace.Metadata.Name)
			}
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inspect finds what is to be removed. It returns the Deployment of the installation, and the objects of the program's
// kinds. An error means that the installation cannot be removed, or must not.
func inspect(ctx context.Context, c *cluster, o *Options) (d *live.Object, objects []*live.Object, err error) {
	if d, err = findDeployment(ctx, c, &o.Installation); err != nil {
		return nil, nil, err
	}
	if len(o.Watched) == 0 {
		o.Watched = flagValues(d, "watch-namespace")
	}
	if d.Metadata.UID != "" { // without it nobody knows which objects both watch
		if o.others, err = otherDeployments(ctx, c, &o.Installation); err != nil {
			return nil, nil, err
		}
	}
	c.resources, c.discoveryErr = wire.DiscoverAll(ctx, c.client)
	if o.ownKinds, err = c.served(ctx, o.Kinds); err == nil {
		err = useStorageVersions(ctx, c, o.ownKinds)
	}
	if err == nil {
		o.reconciled, err = c.served(ctx, o.Reconciled)
	}
	if err == nil {
		err = useStorageVersions(ctx, c, o.reconciled)
	}
	if err == nil {
		objects, err = c.listKinds(ctx, o.ownKinds, o.Watched, nil)
	}
	shared := slices.DeleteFunc(slices.Clone(objects), o.isOwn)
	objects = slices.DeleteFunc(objects, func(x *live.Object) bool { return !o.isOwn(x) })
	if err == nil && len(shared) > 0 {
		fmt.Fprintf(c.out, "leaves the objects that another installation watches, such as %s:%s\n", o.others[0], live.Counts(shared))
	}
	if err == nil {
		err = checkObjects(d, o, objects)
	}
	if err == nil {
		err = checkFinalizers(ctx, c, o)
	}
	if err == nil {
		err = checkBindings(ctx, c, &o.Installation)
	}
	if err == nil {
		err = checkConversions(ctx, c, o, d)
	}
	if err == nil {
		_, err = findConfigurations(ctx, c, o)
	}
	return d, objects, err
}

// isDeleted reports whether the command deletes x as an object of the program.
func (o *Options) isDeleted(x *live.Object) bool {
	return o.DeleteObjects && indexOf(o.ownKinds, x.Resource) >= 0 && isIn(o.Watched, x) && o.isOwn(x)
}

// isOwn reports whether no other installation watches x.
func (o *Options) isOwn(x *live.Object) bool {
	return !slices.ContainsFunc(o.others, func(d *live.Object) bool { return watches(d, x) })
}

// mustCleanUp reports whether the program must clean up after an object that is deleted.
func (o *Options) mustCleanUp(x *live.Object) bool {
	return !o.AbandonCleanup && x.HasFinalizer(o.Finalizers)
}

// ownsConfiguration reports whether a webhook configuration is one of the installation. It has the labels of the
// installation. Or it has the name and no such labels, and calls the Service: somebody may have removed the labels.
func (o *Options) ownsConfiguration(configuration *live.Object) bool {
	m := &configuration.Metadata
	if namespace := m.Labels[manifests.LabelNamespace]; namespace != "" {
		return namespace == o.Namespace && m.Labels[manifests.LabelInstance] == o.Name
	}
	return m.Name == manifests.ClusterName(o.Name, o.Namespace) && slices.ContainsFunc(configuration.Webhooks, func(w live.Webhook) bool {
		s := w.ClientConfig.Service
		return s.Namespace == o.Namespace && s.Name == o.Name
	})
}

// checkBindings returns an error if a binding with the labels of the installation serves another one: it names a
// ServiceAccount of the same name in another namespace, and not that of the installation.
func checkBindings(ctx context.Context, c *cluster, i *manifests.Installation) error {
	for _, r := range c.resources {
		if r.Plural != "clusterrolebindings" && r.Plural != "rolebindings" {
			continue
		}
		taken, err := live.List(ctx, c.client, wire.Stream{Resource: r, LabelSelector: i.Selector()}, func(b *live.Object) bool {
			return slices.ContainsFunc(b.Subjects, func(s live.Subject) bool { return s.Name == i.Name && s.Namespace != i.Namespace }) &&
				!slices.Contains(b.Subjects, live.Subject{Name: i.Name, Namespace: i.Namespace})
		})
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			return fmt.Errorf("%s has the labels of this installation, and grants its role to %v, so another installation needs it: apply the manifests of that one once more", taken[0], taken[0].Subjects)
		}
	}
	return nil
}
