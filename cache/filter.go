package cache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// Filter narrows what [Store.All] returns. All conditions that are set must match; the zero
// value matches everything.
type Filter struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels is nil for all labels.
	Labels labels.Selector
	// Owner is the UID of one of the owner references, or empty.
	Owner types.UID
	// Index is nil, or one of [Store.Index], and Value what its function must have returned
	// for an object, among others. An object for which the function panicked matches.
	Index *kube.Index
	Value string
}
