package manifests

import (
	"context"
	"errors"
	"fmt"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/definitions"
)

// CheckDefinitions returns an error if the server would refuse an apply of the definitions, or if an apply would take
// something from the objects of the cluster: see [definitions.Check]. The server refuses a definition without a
// version in which objects may be stored, and a definition with another scope. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/. migrate
// is the command of the program that migrates objects.
func CheckDefinitions(
	ctx context.Context, client *kube.Client, all []*crd.CustomResourceDefinition, migrate string,
) error {
	var errs []error
	for _, definition := range all {
		response, err := client.Do(ctx,
			&wire.Request{Verb: wire.VerbGet, Resource: DefinitionResource(), Name: definition.Metadata.Name})
		if kube.IsNotFound(err) {
			continue
		}
		var inCluster struct {
			Spec struct {
				Scope string `json:"scope"`
			} `json:"spec"`
		}
		if err == nil {
			err = kube.Unmarshal(response.Body, &inCluster)
		}
		if err != nil {
			return fmt.Errorf("check the definition %s: %w", definition.Metadata.Name, err)
		}
		errs = append(errs, definitions.Check(ctx, client, response.Body, definition, migrate))
		if inCluster.Spec.Scope != definition.Spec.Scope {
			errs = append(errs, fmt.Errorf("%s has the scope %s in the cluster, which the program would change to %s: no server allows that, so give the kind another name",
				definition.Metadata.Name, inCluster.Spec.Scope, definition.Spec.Scope))
		}
	}
	return errors.Join(errs...)
}

// CheckNamespaces returns an error if the namespace of an object does not exist, or is being deleted: the server would
// refuse the object. own is the namespace of the installation, which the objects contain.
func CheckNamespaces(ctx context.Context, client *kube.Client, objects []Object, own string) error {
	checked := map[string]bool{"": true, own: true}
	var errs []error
	for _, object := range objects {
		name, _ := ObjectAt(object, "metadata")["namespace"].(string)
		if checked[name] {
			continue
		}
		checked[name] = true
		namespace, exists, err := clusterread.Find(ctx, client, NamespaceResource(), "", name)
		state := ""
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("check the namespace %s: %w", name, err))
		case !exists:
			state = "does not exist"
		case namespace.Metadata.DeletionTimestamp != nil:
			state = "is being deleted"
		}
		if state != "" {
			errs = append(errs, fmt.Errorf("the namespace %s %s, and the server would refuse the objects of the manifests there, such as the %s %s: create the namespace before, or leave it out of --watch-namespace",
				name, state, Kind(object), Name(object)))
		}
	}
	return errors.Join(errs...)
}

// CheckPlurals returns an error if the cluster defines the kind of a definition under another plural. The server
// would take the definition and never serve the kind, because a group has only one resource of a kind.
func CheckPlurals(ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition) error {
	if len(definitions) == 0 {
		return nil
	}
	var list struct {
		Items []struct {
			Spec struct {
				Group    string    `json:"group"`
				Scope    string    `json:"scope"`
				Names    crd.Names `json:"names"`
				Versions []struct {
					Name   string `json:"name"`
					Served bool   `json:"served"`
				} `json:"versions"`
			} `json:"spec"`
		} `json:"items"`
	}
	response, err := client.Do(ctx, &wire.Request{Verb: wire.VerbList, Resource: DefinitionResource()})
	if err == nil {
		err = kube.Unmarshal(response.Body, &list)
	}
	if err != nil {
		return fmt.Errorf("check the plurals of the kinds: %w", err)
	}
	var errs []error
	for _, definition := range definitions {
		names := definition.Spec.Names
		for _, inCluster := range list.Items {
			if inCluster.Spec.Group == definition.Spec.Group && inCluster.Spec.Names.Kind == names.Kind &&
				inCluster.Spec.Names.Plural != names.Plural {
				r := wire.Resource{Plural: inCluster.Spec.Names.Plural, ClusterScoped: inCluster.Spec.Scope == "Cluster"}
				r.Group, r.Kind = inCluster.Spec.Group, names.Kind
				for _, v := range inCluster.Spec.Versions {
					if v.Served {
						r.Version = v.Name
					}
				}
				objects, err := clusterread.List(ctx, client, wire.Stream{Resource: r, Representation: wire.MetadataOnly}, nil)
				if err != nil {
					errs = append(errs, fmt.Errorf("count the objects of %s: %w", r, err))
				}
				errs = append(errs, fmt.Errorf("the cluster has the kind %s of %s under the plural %s, with %d objects, which the program would change to %s: no server allows that, so set Plural to %q in the Definition of the kind",
					names.Kind, definition.Spec.Group, inCluster.Spec.Names.Plural, len(objects), names.Plural,
					inCluster.Spec.Names.Plural))
			}
		}
	}
	return errors.Join(errs...)
}
