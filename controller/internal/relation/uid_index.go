package relation

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// UIDIndex finds the objects of the reconciled kind by uid. A nil *UIDIndex finds none. It is safe for
// concurrent use.
type UIDIndex struct {
	mu   sync.Mutex
	keys map[clusterUID]kube.Key
}

type clusterUID struct {
	cluster string
	uid     types.UID
}

// NewUIDIndex returns an index without objects.
func NewUIDIndex() *UIDIndex { return &UIDIndex{keys: make(map[clusterUID]kube.Key)} }

// Add adds the object k.
func (x *UIDIndex) Add(k kube.Key, uid types.UID) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys[clusterUID{k.Cluster, uid}] = k
}

// Remove removes the object k.
func (x *UIDIndex) Remove(k kube.Key, uid types.UID) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.keys, clusterUID{k.Cluster, uid})
}

// Key returns the key of the object that has a uid. It returns false if no object has it.
func (x *UIDIndex) Key(cluster string, uid types.UID) (kube.Key, bool) {
	if x == nil {
		return kube.Key{}, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	k, ok := x.keys[clusterUID{cluster, uid}]
	return k, ok
}
