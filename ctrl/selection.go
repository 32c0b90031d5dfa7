package ctrl

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/yare-go/yare/kube/wire"
)

// defaultSyncPeriod is how often the handlers of controller-runtime get all objects again.
const defaultSyncPeriod = 10 * time.Hour

// selectionOfKind is a part of the objects of a kind that a cache holds.
type selectionOfKind struct {
	// namespace is empty for all namespaces.
	namespace string
	// labels and fields are never nil.
	labels labels.Selector
	fields fields.Selector
	// transform is nil or changes each decoded object.
	transform toolscache.TransformFunc
	// syncPeriod is how often event handlers get all objects again.
	syncPeriod time.Duration
}

// stream returns the stream of the selection.
func (s selectionOfKind) stream(r wire.Resource, representation wire.Representation) wire.Stream {
	return wire.Stream{
		Resource: r, Namespace: s.namespace, Representation: representation,
		LabelSelector: s.labels.String(), FieldSelector: s.fields.String(),
	}
}

// resync returns after which time handlers get all objects again: the period with up to a tenth more.
func (s selectionOfKind) resync() time.Duration {
	return s.syncPeriod + time.Duration(rand.Float64()*0.1*float64(s.syncPeriod))
}

// selector finds the selections of kinds in the options of a cache.
type selector struct {
	options  ctrlcache.Options
	byObject map[schema.GroupVersionKind]ctrlcache.ByObject
}

// newSelector returns an error for options that the cache of yare does not have.
func newSelector(options ctrlcache.Options) (*selector, error) {
	switch {
	case options.NewInformer != nil:
		return nil, errors.New("the cache of yare has no informers of client-go: leave cache.Options.NewInformer out")
	case options.DefaultWatchErrorHandler != nil:
		return nil, errors.New("the cache of yare repeats watches by its own rules: leave cache.Options.DefaultWatchErrorHandler out")
	}
	s := &selector{options: options, byObject: make(map[schema.GroupVersionKind]ctrlcache.ByObject)}
	for object, by := range options.ByObject {
		gvk, err := apiutil.GVKForObject(object, options.Scheme)
		if err != nil {
			return nil, fmt.Errorf("cache.Options.ByObject: %w", err)
		}
		s.byObject[gvk] = by
	}
	return s, nil
}

// selectionsOf returns the selections of a kind. A setting of the kind in a namespace comes first, then that of the kind,
// then that of the namespace, and then the default.
func (s *selector) selectionsOf(gvk schema.GroupVersionKind, scope meta.RESTScopeName) ([]selectionOfKind, error) {
	by := s.byObject[gvk]
	namespaces := by.Namespaces
	switch {
	case scope == meta.RESTScopeNameRoot && namespaces != nil:
		return nil, fmt.Errorf("%s lives outside of namespaces, but cache.Options.ByObject names namespaces", gvk)
	case scope == meta.RESTScopeNameRoot:
	case namespaces == nil:
		namespaces = s.options.DefaultNamespaces
	}
	if len(namespaces) == 0 {
		return []selectionOfKind{s.selectionOf(metav1.NamespaceAll, by, ctrlcache.Config{}, ctrlcache.Config{})}, nil
	}
	var selections []selectionOfKind
	for namespace, config := range namespaces {
		selections = append(selections, s.selectionOf(namespace, by, config, s.options.DefaultNamespaces[namespace]))
	}
	slices.SortFunc(selections, func(a, b selectionOfKind) int { return cmp.Compare(a.namespace, b.namespace) })
	if first := &selections[0]; first.namespace == metav1.NamespaceAll {
		// All namespaces beside named ones are those that are not named.
		for _, other := range selections[1:] {
			first.fields = fields.AndSelectors(first.fields, fields.OneTermNotEqualSelector("metadata.namespace", other.namespace))
		}
	}
	return selections, nil
}

// selectionOf returns the selection in a namespace. configs are the settings of the kind there and of the namespace.
func (s *selector) selectionOf(namespace string, by ctrlcache.ByObject, configs ...ctrlcache.Config) selectionOfKind {
	o := s.options
	merged := configs[0]
	for _, c := range []ctrlcache.Config{
		{LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform, SyncPeriod: by.SyncPeriod}, configs[1],
		{LabelSelector: o.DefaultLabelSelector, FieldSelector: o.DefaultFieldSelector, Transform: o.DefaultTransform, SyncPeriod: o.SyncPeriod},
		{LabelSelector: labels.Everything(), FieldSelector: fields.Everything(), SyncPeriod: new(defaultSyncPeriod)},
	} {
		if merged.LabelSelector == nil {
			merged.LabelSelector = c.LabelSelector
		}
		if merged.FieldSelector == nil {
			merged.FieldSelector = c.FieldSelector
		}
		if merged.Transform == nil {
			merged.Transform = c.Transform
		}
		if merged.SyncPeriod == nil {
			merged.SyncPeriod = c.SyncPeriod
		}
	}
	return selectionOfKind{namespace, merged.LabelSelector, merged.FieldSelector, merged.Transform, *merged.SyncPeriod}
}
