// Package uninstall removes an installation of a program from a cluster, and destroys no data that
// the user did not name.
//
// First it looks at everything that could stop it: objects of the program's kinds, finalizers of the program on any
// object, and what belongs to another installation. Then the user confirms. The steps of the removal, by their
// functions, are:
//
//  1. removeConfigurations removes the webhook configurations. So no write is refused if the program does not run.
//  2. removeObjects removes the objects of the program's kinds, if the user wants them deleted. The program still runs,
//     and cleans up after them.
//  3. handOverConversions gives the conversions of the program's kinds to another installation. If there is none, it stores
//     all objects in one version, which is the only one that is served then.
//  4. removeDeployment removes the Deployment with its Pods.
//  5. removeConversions ends the conversions that no other installation has taken over.
//  6. removeFinalizers removes the finalizers of the program from objects that stay, if the user wants that.
//  7. releaseRoles removes the finalizer that keeps the Roles and RoleBindings in watched namespaces until the last cleanup.
//  8. removeLabelled removes all other objects with the labels of the installation, of whatever kind.
//  9. removeSecrets removes the Secrets of the program that may have no labels.
//  10. removeLease removes the Lease of the program.
//  11. removeDefinitions removes the CustomResourceDefinitions, unless somebody else needs them.
//  12. showNamespace prints the command that deletes the Namespace. Only the user deletes a Namespace.
//
// Each step that fails ends the command. The next call goes on from there.
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
	"github.com/yare-go/yare/operator/internal/clusterread"
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
	// ResourcesBefore are the resources whose objects have to go before the Deployment, so the user must be able to list
	// them. Webhook configurations go before the Deployment in any case, because an earlier release may have had webhooks.
	ResourcesBefore []wire.Resource
	// SecretsAfter are the names of the Secrets that go after the Deployment, with or without labels.
	SecretsAfter []string
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
}

// findings are what the command has found before the first change.
type findings struct {
	*Options
	// deployment is the Deployment of the installation. It has no UID if it does not exist.
	deployment *clusterread.Object
	// watched holds the namespaces that the program watches. It is empty for all namespaces.
	watched []string
	// ownKinds and reconciled are Kinds and Reconciled in the versions that the server serves.
	ownKinds, reconciled []wire.Resource
	// others are the Deployments of other installations of the program. Their objects are no concern of this one. It is
	// empty if the Deployment does not exist, because nobody knows then which objects both watch.
	others []*clusterread.Object
	// objects are the objects of the program's kinds that no other installation watches.
	objects []*clusterread.Object
}

// errStopped is the error of a command that has changed nothing.
var errStopped = errors.New("nothing was removed")

// Run removes the installation. The error contains what is left, and why.
func Run(ctx context.Context, client *kube.Client, o *Options) error {
	c := &cluster{client: client, out: o.Out, isDryRun: o.DryRun, limit: o.Timeout}
	f, err := inspect(ctx, c, o)
	if err == nil && !o.DryRun {
		err = o.Confirm(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	for _, step := range []func(context.Context, *cluster, *findings) error{
		removeConfigurations,
		removeObjects,
		handOverConversions,
		removeDeployment,
		removeConversions,
		removeFinalizers,
		releaseRoles,
		removeLabelled,
		removeSecrets,
		removeLease,
		removeDefinitions,
		showNamespace,
	} {
		if err := step(ctx, c, f); err != nil {
			return err
		}
	}
	return nil
}

// inspect finds what is to be removed. An error means that the installation cannot be removed, or must not.
func inspect(ctx context.Context, c *cluster, o *Options) (*findings, error) {
	f := &findings{Options: o, watched: o.Watched}
	var err error
	if f.deployment, err = findDeployment(ctx, c, &o.Installation); err != nil {
		return nil, err
	}
	if len(f.watched) == 0 {
		f.watched = flagValues(f.deployment, "watch-namespace")
	}
	if f.deployment.Metadata.UID != "" {
		if f.others, err = otherDeployments(ctx, c, &o.Installation); err != nil {
			return nil, err
		}
	}
	c.resources, c.discoveryErr = wire.DiscoverAll(ctx, c.client)
	if f.ownKinds, err = c.servedKinds(ctx, o.Kinds); err == nil {
		err = useStorageVersions(ctx, c, f.ownKinds)
	}
	if err == nil {
		f.reconciled, err = c.servedKinds(ctx, o.Reconciled)
	}
	if err == nil {
		err = useStorageVersions(ctx, c, f.reconciled)
	}
	var objects []*clusterread.Object
	if err == nil {
		objects, err = c.listKinds(ctx, f.ownKinds, f.watched, nil)
	}
	shared := slices.DeleteFunc(slices.Clone(objects), f.isExclusive)
	f.objects = slices.DeleteFunc(objects, func(x *clusterread.Object) bool { return !f.isExclusive(x) })
	if err == nil && len(shared) > 0 {
		fmt.Fprintf(c.out, "leaves the objects that another installation watches, such as %s:%s\n",
			f.others[0], clusterread.Counts(shared))
	}
	if err == nil {
		err = f.checkObjects()
	}
	if err == nil {
		err = checkFinalizers(ctx, c, f)
	}
	if err == nil {
		err = checkBindings(ctx, c, &o.Installation)
	}
	if err == nil {
		err = checkConversions(ctx, c, f)
	}
	if err == nil {
		_, err = findConfigurations(ctx, c, f)
	}
	return f, err
}

// checkObjects returns an error if the objects of the program's kinds cannot be deleted, or must not.
func (f *findings) checkObjects() error {
	switch {
	case len(f.objects) == 0:
		return nil
	case f.deployment.Metadata.UID == "" && len(f.watched) == 0:
		return fmt.Errorf("%s does not exist, so nobody knows which namespaces the program watched: check --namespace and --name-prefix, or name the namespaces with --watch-namespace. These objects exist:%s",
			f.deployment, clusterread.Counts(f.objects))
	case !f.DeleteObjects:
		return fmt.Errorf("these objects exist:%s\n--delete-objects deletes them too", clusterread.Counts(f.objects))
	case f.deployment.Status.ReadyReplicas == 0 && slices.ContainsFunc(f.objects, f.mustCleanUp):
		return fmt.Errorf("no replica of %s is ready, so nobody would clean up after these objects:%s\nmake the program run, or give --abandon-cleanup, which leaves behind what the objects have outside of the cluster",
			f.deployment, clusterread.Counts(f.objects))
	}
	return nil
}

// isDeleted reports whether the command deletes x as an object of the program.
func (f *findings) isDeleted(x *clusterread.Object) bool {
	return f.DeleteObjects && indexOf(f.ownKinds, x.Resource) >= 0 && isIn(f.watched, x) && f.isExclusive(x)
}

// isExclusive reports whether no other installation watches x.
func (f *findings) isExclusive(x *clusterread.Object) bool {
	return !slices.ContainsFunc(f.others, func(d *clusterread.Object) bool { return watches(d, x) })
}

// mustCleanUp reports whether the program must clean up after an object that is deleted.
func (o *Options) mustCleanUp(x *clusterread.Object) bool {
	return !o.AbandonCleanup && x.HasFinalizer(o.Finalizers)
}

// ownsConfiguration reports whether a webhook configuration is one of the installation. It has the labels of the
// installation. Or it has the name and no such labels, and calls the Service: somebody may have removed the labels.
func (o *Options) ownsConfiguration(configuration *clusterread.Object) bool {
	m := &configuration.Metadata
	if namespace := m.Labels[manifests.LabelNamespace]; namespace != "" {
		return namespace == o.Namespace && m.Labels[manifests.LabelInstance] == o.Name
	}
	return m.Name == manifests.ClusterName(o.Name, o.Namespace) &&
		slices.ContainsFunc(configuration.Webhooks, func(w clusterread.Webhook) bool {
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
		taken, err := clusterread.List(ctx, c.client, wire.Stream{
			Resource: r, LabelSelector: i.Selector(),
		}, func(b *clusterread.Object) bool {
			return slices.ContainsFunc(b.Subjects,
				func(s clusterread.Subject) bool { return s.Name == i.Name && s.Namespace != i.Namespace }) &&
				!slices.Contains(b.Subjects, clusterread.Subject{Name: i.Name, Namespace: i.Namespace})
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
