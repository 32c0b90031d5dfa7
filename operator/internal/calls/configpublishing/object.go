package configpublishing

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// object is a webhook configuration, or a Namespace, with the fields that this package reads. The types of k8s.io/api
// would be linked for nothing else. The zero value stands for an object that does not exist.
type object struct {
	Metadata metadata `json:"metadata"`
	// Webhooks are the entries of a configuration. A Namespace has none.
	Webhooks []entry `json:"webhooks"`
}

type metadata struct {
	Name              string                      `json:"name"`
	UID               types.UID                   `json:"uid"`
	ResourceVersion   string                      `json:"resourceVersion"`
	DeletionTimestamp string                      `json:"deletionTimestamp"`
	OwnerReferences   []metav1.OwnerReference     `json:"ownerReferences"`
	ManagedFields     []metav1.ManagedFieldsEntry `json:"managedFields"`
}

// otherManagers returns the field managers of the object but own.
func (o *object) otherManagers(own string) (managers []string) {
	for _, e := range o.Metadata.ManagedFields {
		if e.Manager != own && !slices.Contains(managers, e.Manager) {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}

// setBackFields returns the fields of other managers that a write of entries has changed. before is the object that was
// written, and after is what the server has stored.
func setBackFields(entries []entry, before, after *object, own string) (fields []contested.Field) {
	var texts [3][]byte
	for i, each := range []any{object{Webhooks: entries}, before, after} {
		var err error
		if texts[i], err = kube.Marshal(each); err != nil {
			return nil
		}
	}
	all, err := contested.SetBack(texts[0], texts[1], texts[2], own)
	if err != nil {
		return nil
	}
	for _, f := range all {
		if f.Manager != "" && strings.HasPrefix(f.Path, ".webhooks") {
			fields = append(fields, f)
		}
	}
	return fields
}

// exists reports whether the object exists.
func (o *object) exists() bool { return o.Metadata.UID != "" }

// sent is what a write sends: a configuration to create, or a merge patch of a configuration.
type sent struct {
	APIVersion string       `json:"apiVersion,omitempty"`
	Kind       string       `json:"kind,omitempty"`
	Metadata   sentMetadata `json:"metadata"`
	Webhooks   []entry      `json:"webhooks"`
}

type sentMetadata struct {
	Name            string                  `json:"name,omitempty"`
	UID             types.UID               `json:"uid,omitempty"`
	ResourceVersion string                  `json:"resourceVersion"`
	Labels          map[string]string       `json:"labels,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// createConfiguration creates a configuration with labels, as wanted says. It is for a program that publishes a URL: no
// other program may send a request that can create. It fails if the configuration exists: see [followed.IsOutdated].
func createConfiguration(
	ctx context.Context, c followed.Reference[object], client *kube.Client, labels map[string]string, wanted *plan,
) (followed.State[object], error) {
	return c.Write(ctx, client, wire.ContentApply, &sent{
		APIVersion: c.Resource.GroupVersion().String(), Kind: c.Resource.Kind,
		Metadata: sentMetadata{
			Name: c.Name, ResourceVersion: ident.NeverVersion, Labels: labels, OwnerReferences: wanted.owners,
		},
		Webhooks: wanted.entries,
	}, wire.Preconditions{ResourceVersion: ident.NeverVersion})
}

// patchConfiguration changes the configuration current, as wanted says. It fails if the server has another version: see
// [followed.IsOutdated].
func patchConfiguration(
	ctx context.Context, c followed.Reference[object], client *kube.Client, current *object, wanted *plan,
) (followed.State[object], error) {
	return c.Write(ctx, client, wire.ContentMergePatch, &sent{
		Metadata: sentMetadata{
			UID: current.Metadata.UID, ResourceVersion: current.Metadata.ResourceVersion, OwnerReferences: wanted.owners,
		},
		Webhooks: wanted.entries,
	}, current.preconditions())
}

// deleteConfiguration deletes the configuration current. It fails if the server has another version: see
// [followed.IsOutdated].
func deleteConfiguration(
	ctx context.Context, c followed.Reference[object], client *kube.Client, current *object,
) error {
	options, err := kube.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &current.Metadata.UID, ResourceVersion: &current.Metadata.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return c.Delete(ctx, client, options, current.preconditions())
}

// preconditions returns the preconditions of a write of the object as it is.
func (o *object) preconditions() wire.Preconditions {
	return wire.Preconditions{UID: o.Metadata.UID, ResourceVersion: o.Metadata.ResourceVersion}
}
