package controller

import (
	"context"
	"iter"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

// shownObjects are the objects of the reconciled kind, as the controller's own streams show them. [subscriptions] implements
// it.
type shownObjects interface {
	keys() iter.Seq[kube.Key]
	covers(k kube.Key) bool
	stored(k kube.Key) (cache.Object, bool)
	// confirmTerm returns whether the store of an object shows all writes of former leaders to the object.
	confirmTerm(ctx context.Context, k kube.Key) bool
	// isSynced reports whether the streams that can show an object of a key have shown all objects that existed at their start.
	isSynced(k kube.Key) bool
	// isKindUnserved reports whether the streams of a cluster have found that the server does not serve the kind.
	isKindUnserved(cluster string) bool
}
