package migration

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// object is the metadata of an object of the kind that is migrated.
type object struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
}

// name returns how messages name the object.
func (x *object) name(r wire.Resource) string {
	if x.Metadata.Namespace == "" {
		return r.String() + " " + x.Metadata.Name
	}
	return r.String() + " " + x.Metadata.Namespace + "/" + x.Metadata.Name
}

// isIncomplete reports whether the version in which the object was read lacks values of the object.
func (x *object) isIncomplete() bool {
	_, isIncomplete := x.Metadata.Annotations[ident.IncompleteAnnotation]
	return isIncomplete
}

// hasUnservedManagers reports whether an entry of managedFields is in a version that is not served.
func (x *object) hasUnservedManagers(d *liveDefinition) bool {
	return slices.ContainsFunc(x.Metadata.ManagedFields,
		func(e metav1.ManagedFieldsEntry) bool { return isUnserved(e, d) })
}

// isUnserved reports whether an entry of managedFields is in a version of the kind that is not served.
func isUnserved(e metav1.ManagedFieldsEntry, d *liveDefinition) bool {
	gv, err := apischema.ParseGroupVersion(e.APIVersion)
	return err == nil && gv.Group == d.Spec.Group && !d.isServed(gv.Version)
}

// unservedAnnotations returns the keys of the annotations that keep values of versions that are not served.
func (x *object) unservedAnnotations(d *liveDefinition) (keys []string) {
	for key := range x.Metadata.Annotations {
		name, ok := strings.CutPrefix(key, ident.ConversionPrefix)
		version, _, _ := strings.Cut(name, ".") // the name of a version has no dot
		if ok && key != ident.IncompleteAnnotation && !d.isServed(version) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// holdsValues reports whether the text of an annotation that keeps values holds any.
func holdsValues(text string) bool {
	return !slices.Contains([]string{"", "{}", "[]", "null"}, strings.TrimSpace(text))
}
