package manifests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
)

// Conflicts finds what stands in the way of an installation in a cluster.
type Conflicts struct {
	Installation
	Client *kube.Client
	// Groups are those of the kinds that the program defines, and Finalizers are those of the program.
	Groups, Finalizers []string
	// Watched are the namespaces that the program watches. None means all.
	Watched []string
	// PrintNote gets a line for each thing that the user should know: objects of the installation under an older name,
	// finalizers that the program does not know, and what cannot be checked.
	PrintNote func(string)

	// resources holds what the server serves.
	resources []wire.Resource
}

// Check compares the objects of the installation with the cluster. It returns an error if an apply would change what
// belongs to another installation, or change the name of the program.
func (c *Conflicts) Check(ctx context.Context, objects []Object) (err error) {
	if c.resources, err = wire.DiscoverAll(ctx, c.Client); err != nil {
		c.PrintNote(fmt.Sprintf("some resources are not checked: %v", err))
	}
	printed := make(map[string]bool)
	var errs []error
	for _, object := range objects {
		o, exists, err := c.find(ctx, object)
		if err != nil {
			return err
		}
		if exists {
			printed[o.String()] = true
			errs = append(errs, c.CheckOwner(o), c.checkName(ctx, o, object))
		}
	}
	errs = append(errs, c.checkOthers(ctx))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.searchAll(ctx, printed)
}

// checkOthers returns an error if a further installation of the program would watch all namespaces, and so the objects
// of the installation that exists. For an installation that exists too, it prints a line.
func (c *Conflicts) checkOthers(ctx context.Context) error {
	if len(c.Watched) > 0 {
		return nil
	}
	isInstalled := false
	others, err := clusterread.List(ctx, c.Client, wire.Stream{
		Resource: clusterread.Deployments(), LabelSelector: LabelName + "=" + c.Program, Representation: wire.MetadataOnly,
	}, func(d *clusterread.Object) bool {
		isOwn := d.Metadata.Namespace == c.Namespace && d.Metadata.Name == c.Name
		isInstalled = isInstalled || isOwn
		return !isOwn && IsPrinted(d)
	})
	if err != nil || len(others) == 0 {
		return err
	}
	text := fmt.Sprintf("%s is another installation of the program, and this one watches all namespaces, so both act on the same objects: give each installation namespaces of its own with --watch-namespace, or remove one of them", others[0])
	if !isInstalled {
		return errors.New(text)
	}
	c.PrintNote(text)
	return nil
}

// find returns an object as the cluster has it. It reports false if the object does not exist in the cluster.
func (c *Conflicts) find(ctx context.Context, object Object) (o *clusterread.Object, exists bool, err error) {
	version, _ := object["apiVersion"].(string)
	group := ""
	if i := strings.Index(version, "/"); i > 0 {
		group = version[:i]
	}
	namespace, _ := ObjectAt(object, "metadata")["namespace"].(string)
	for _, r := range c.resources {
		if r.Kind == Kind(object) && r.Group == group {
			return clusterread.Find(ctx, c.Client, r, namespace, Name(object))
		}
	}
	return nil, false, nil
}

// checkName returns an error if the program is installed under another name: o is its Deployment, which manifest would
// change, or a definition that the program has applied under that name.
func (c *Conflicts) checkName(ctx context.Context, o *clusterread.Object, manifest Object) error {
	selected := o.Spec.Selector.MatchLabels
	d, former := o, selected[LabelName]
	switch o.Resource.Kind {
	case "Deployment":
		// Maps are printed in the order of their keys.
		if fmt.Sprint(selected) == fmt.Sprint(ObjectAt(manifest, "spec", "selector", "matchLabels")) {
			return nil
		}
	case "CustomResourceDefinition":
		former = o.Metadata.Labels[LabelName]
		if former == c.Program || o.Metadata.Labels[LabelManagedBy] != ManagedBy {
			return nil
		}
		installed, err := clusterread.List(ctx, c.Client,
			wire.Stream{Resource: clusterread.Deployments(), LabelSelector: LabelName + "=" + former}, IsPrinted)
		if err != nil || len(installed) == 0 {
			return err
		}
		d = installed[0]
	default:
		return nil
	}
	if former == "" || former == c.Program {
		return fmt.Errorf("%s selects other Pods than the manifests, and no server changes the selector of a Deployment: delete that Deployment first, or give another --name-prefix", d)
	}
	return fmt.Errorf("%s is the program under the name %q, and not %q. No server changes the selector of a Deployment, and programs of two names lead beside each other. Keep the name, with the field Name of operator.Program. Or delete that Deployment first, with kubectl delete deployment --namespace %s %s: nothing is reconciled until the manifests are applied",
		d, former, c.Program, d.Metadata.Namespace, d.Metadata.Name)
}

// searchAll reads the objects of all kinds. It prints a line about the roles and bindings of the installation that
// objects lacks, and the objects with finalizers that the program has forgotten.
func (c *Conflicts) searchAll(ctx context.Context, printed map[string]bool) error {
	older, forgotten := "", make(map[string][]*clusterread.Object)
	for _, r := range c.resources {
		if !clusterread.IsSearched(r) {
			continue
		}
		isRole := r.Group == "rbac.authorization.k8s.io"
		_, err := clusterread.List(ctx, c.Client, wire.Stream{
			Resource: r, Representation: wire.MetadataOnly,
		}, func(o *clusterread.Object) bool {
			labels := o.Metadata.Labels
			if isRole && labels[LabelInstance] == c.Name && labels[LabelNamespace] == c.Namespace && !printed[o.String()] {
				older += "\n  " + o.String()
			}
			for _, name := range o.Metadata.Finalizers {
				if c.isForgotten(name) {
					forgotten[name] = append(forgotten[name], o)
				}
			}
			return false
		})
		switch {
		case kube.IsNoResource(err): // its definition has gone meanwhile
		case err != nil && isRole:
			return err
		case err != nil:
			c.PrintNote(fmt.Sprintf("%s are not checked: %v", r, err))
		}
	}
	if older != "" {
		c.PrintNote(
			"objects of this installation have an older name. The command in the third line of the manifests deletes them:" +
				older)
	}
	for name, objects := range forgotten {
		c.PrintNote("the program does not know the finalizer " + name + " of these objects, so it does not let them go. If an earlier version added it, name it in FormerFinalizers or RetiredFinalizers of a controller:" + clusterread.Counts(objects))
	}
	return nil
}

// isForgotten reports whether a finalizer seems to be one of the program, and the program does not know it. The domain
// of such a finalizer is a group that the program defines, or below such a group, or it is the domain of a known
// finalizer.
//
// For example, a program defines the group example.com, and knows the finalizer apps.example.org/cleanup. It has
// forgotten jobs.example.com/cleanup and apps.example.org/backup. The finalizer jobs.example.org/cleanup belongs to
// somebody else.
func (c *Conflicts) isForgotten(name string) bool {
	domain, _, isQualified := strings.Cut(name, "/")
	if !isQualified || slices.Contains(c.Finalizers, name) {
		return false
	}
	for _, group := range c.Groups {
		if strings.HasSuffix("."+domain, "."+group) {
			return true
		}
	}
	for _, known := range c.Finalizers {
		if strings.HasPrefix(known, domain+"/") {
			return true
		}
	}
	return false
}
