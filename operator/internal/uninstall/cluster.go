package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// removeDefinitions removes the CustomResourceDefinitions of the program, unless somebody else needs
// them.
func (u *uninstaller) removeDefinitions(ctx context.Context) error {
	others, err := u.otherInstallations(ctx)
	if err != nil {
		return err
	}
	for _, r := range u.Kinds {
		definition, err := u.get(ctx, manifests.DefinitionResource(), "", r.String())
		if err != nil {
			return err
		}
		if definition == nil {
			continue
		}
		reason := ""
		switch {
		case definition.Labels[manifests.LabelManagedBy] != manifests.ManagedBy:
			reason = "it has not got the label of the command manifests, so somebody else applied it"
		case others != "":
			reason = "the program is also installed as " + others
		default:
			objects, err := (&uninstaller{Options: Options{Kinds: []kube.Resource{r}}, client: u.client}).objects(ctx, nil)
			if err != nil {
				return err
			}
			objects = slices.DeleteFunc(objects, func(o custom) bool { return u.DryRun && u.DeleteObjects && u.isWatched(o) })
			if len(objects) > 0 {
				reason = "objects exist:" + countsOf(objects)
			}
		}
		if reason != "" {
			fmt.Fprintf(u.Out, "kept %s: %s\n", nameOf(manifests.DefinitionResource(), definition), reason)
			continue
		}
		if err := u.remove(ctx, manifests.DefinitionResource(), definition); err != nil {
			return err
		}
	}
	return nil
}

// isWatched reports whether the program watches the namespace of an object.
func (u *uninstaller) isWatched(o custom) bool {
	return len(u.Watched) == 0 || o.object.Namespace == "" || slices.Contains(u.Watched, o.object.Namespace)
}

// otherInstallations returns the name of another Deployment of the program, or nothing.
func (u *uninstaller) otherInstallations(ctx context.Context) (string, error) {
	all, err := u.list(ctx, kube.Stream{Resource: deployments(), LabelSelector: manifests.LabelName + "=" + u.Program})
	if err != nil {
		return "", fmt.Errorf("look for other installations of the program: %w", err)
	}
	for _, d := range all {
		if d.Namespace != u.Namespace || d.Name != u.Name {
			return nameOf(deployments(), d), nil
		}
	}
	return "", nil
}

// removeNamespace removes the Namespace of the installation, if the manifests made it and it holds
// nothing else.
func (u *uninstaller) removeNamespace(ctx context.Context) error {
	namespace, err := u.get(ctx, namespaces(), "", u.Namespace)
	if err != nil || namespace == nil {
		return err
	}
	reason := "it existed before the installation, or was changed since"
	if namespace.Labels[manifests.LabelInstance] == u.Name && isCreatedWithLabels(namespace) {
		if reason, err = u.contents(ctx); err != nil {
			return err
		}
	}
	if reason != "" {
		fmt.Fprintf(u.Out, "kept %s: %s\n", nameOf(namespaces(), namespace), reason)
		return nil
	}
	return u.remove(ctx, namespaces(), namespace)
}

// isCreatedWithLabels reports whether a Namespace got the labels of the installation when it was
// created. The server records who set a field and when, in whole seconds, and it does so before it
// sets the time of the creation. The labels never change, so an upgrade leaves that record alone.
// Whoever set another field in the first second may have created the Namespace before.
func isCreatedWithLabels(namespace *metadata) bool {
	isCreated := false
	for _, entry := range namespace.ManagedFields {
		if entry.Subresource != "" {
			continue
		}
		if entry.Time == nil || entry.FieldsV1 == nil {
			return false
		}
		age := entry.Time.Sub(namespace.CreationTimestamp.Time)
		if strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+manifests.LabelInstance+`"`) {
			isCreated = -time.Second <= age && age <= 0
		} else if age <= time.Second {
			return false
		}
	}
	return isCreated
}

// contents returns what the namespace of the installation holds that nobody has deleted, or nothing.
func (u *uninstaller) contents(ctx context.Context) (string, error) {
	if u.discoveryErr != nil {
		return fmt.Sprintf("nobody knows what it holds: %v", u.discoveryErr), nil
	}
	var left []custom
	for _, r := range u.resources {
		if r.ClusterScoped || isDerived(r) {
			continue
		}
		objects, err := u.list(ctx, kube.Stream{Resource: r, Namespace: u.Namespace})
		if err != nil {
			return fmt.Sprintf("nobody knows what it holds: %v", err), nil
		}
		for _, o := range objects {
			left = append(left, custom{r, o})
		}
	}
	// What goes by itself can own objects that came before it.
	for before := -1; before != len(left); {
		before = len(left)
		left = slices.DeleteFunc(left, u.isRemovedByOthers)
	}
	if len(left) > 0 {
		return "it holds " + nameOf(left[0].resource, left[0].object), nil
	}
	return "", ctx.Err()
}

// isRemovedByOthers reports whether an object is one that each namespace has, was deleted, or is owned by
// an object that goes by itself.
func (u *uninstaller) isRemovedByOthers(o custom) bool {
	switch {
	case slices.Contains(u.deletedUIDs, string(o.object.UID)):
		return true
	case o.resource.Group == "" && o.resource.Plural == "configmaps" && o.object.Name == "kube-root-ca.crt",
		o.resource.Group == "" && o.resource.Plural == "serviceaccounts" && o.object.Name == "default":
		return true
	}
	for _, owner := range o.object.OwnerReferences {
		if slices.Contains(u.deletedUIDs, string(owner.UID)) {
			u.deletedUIDs = append(u.deletedUIDs, string(o.object.UID))
			return true
		}
	}
	return false
}

// isDerived reports whether the objects of a resource are made of others, and go by themselves:
// Events, the Endpoints of Services, and the figures of Pods.
func isDerived(r kube.Resource) bool {
	return r.Plural == "events" || r.Group == "metrics.k8s.io" || r.Group == "" && r.Plural == "endpoints"
}
