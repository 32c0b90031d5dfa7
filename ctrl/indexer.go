package ctrl

import (
	"errors"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/yare-go/yare/kube"
)

var (
	errNoIndexers = errors.New("the cache of yare has no indexers of client-go: use IndexField")
	errReadOnly   = errors.New("the store of an informer of yare can only be read: write by the client")
)

// indexer shows the objects of an informer as a store of client-go. It decodes objects for each read, and has no index.
// Its methods can be used concurrently.
type indexer struct{ informer *informer }

// LastStoreSyncResourceVersion returns the version that the store has reached, or "" before it is complete.
func (x indexer) LastStoreSyncResourceVersion() string { return x.informer.LastSyncResourceVersion() }

// List returns all objects.
func (x indexer) List() []any {
	all := []any{}
	for n, o := range x.informer.all {
		if object := x.informer.decodeOrLog(o, n); object != nil {
			all = append(all, object)
		}
	}
	return all
}

// ListKeys returns the keys of all objects.
func (x indexer) ListKeys() []string {
	keys := []string{}
	for _, o := range x.informer.all {
		keys = append(keys, toolscache.NewObjectName(o.Namespace, o.Name).String())
	}
	return keys
}

// Get returns the object with the key of another one, and whether it exists.
func (x indexer) Get(object any) (any, bool, error) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

// GetByKey returns the object with a key, and whether it exists.
func (x indexer) GetByKey(key string) (any, bool, error) {
	name, err := toolscache.ParseObjectName(key)
	if err != nil {
		return nil, false, err
	}
	for n := range x.informer.selections {
		store := x.informer.storeOf(n)
		if store == nil {
			continue
		}
		if o, isStored := store.Get(kube.Key{Namespace: name.Namespace, Name: name.Name}); isStored {
			object, err := x.informer.decode(o, n)
			return object, err == nil, err
		}
	}
	return nil, false, nil
}

// Bookmark does nothing: the streams know their versions.
func (x indexer) Bookmark(string) {}

// Resync does nothing, as that of client-go.
func (x indexer) Resync() error { return nil }

// Add returns an error: the store can only be read.
func (x indexer) Add(any) error { return errReadOnly }

// Update returns an error: the store can only be read.
func (x indexer) Update(any) error { return errReadOnly }

// Delete returns an error: the store can only be read.
func (x indexer) Delete(any) error { return errReadOnly }

// Replace returns an error: the store can only be read.
func (x indexer) Replace([]any, string) error { return errReadOnly }

// Index returns an error: there are no indexers.
func (x indexer) Index(string, any) ([]any, error) { return nil, errNoIndexers }

// IndexKeys returns an error: there are no indexers.
func (x indexer) IndexKeys(string, string) ([]string, error) { return nil, errNoIndexers }

// ByIndex returns an error: there are no indexers.
func (x indexer) ByIndex(string, string) ([]any, error) { return nil, errNoIndexers }

// ListIndexFuncValues returns no values: there are no indexers.
func (x indexer) ListIndexFuncValues(string) []string { return nil }

// GetIndexers returns no indexers.
func (x indexer) GetIndexers() toolscache.Indexers { return nil }

// AddIndexers returns an error: nobody could read by such an index.
func (x indexer) AddIndexers(toolscache.Indexers) error { return errNoIndexers }
