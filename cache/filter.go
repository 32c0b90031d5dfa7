package cache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Filter narrows what [Store.All] shows. What is set must all match; the zero value
// matches everything.
type Filter struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels is nil for all labels.
	Labels labels.Selector
	// Owner is the uid of one of the ownerReferences, or empty.
	Owner types.UID
	// Index is the name of an index of [Store.Index], or empty, and Value what the index
	// function must have returned for an object, among others.
	Index, Value string
}
