package ctrl

import (
	"bytes"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/yare-go/yare/kube"
)

// maxRecentObjects is how many objects an informer keeps decoded.
const maxRecentObjects = 32

// recentObjects keeps the objects of the latest events decoded: two versions of each, because an update has two. So the
// handlers of an event and the reconciles after it decode an object once. The zero value is ready to use. The methods can
// be used concurrently.
type recentObjects struct {
	mu    sync.Mutex
	byKey map[kube.Key][2]decodedObject
	// order has the keys, the oldest first.
	order []kube.Key
}

// decodedObject is an object and its JSON. Nobody changes it.
type decodedObject struct {
	text   []byte
	object client.Object
}

// get returns a copy of the object that a text stands for, or nil if it is not kept.
func (r *recentObjects) get(k kube.Key, text []byte) client.Object {
	r.mu.Lock()
	versions := r.byKey[k]
	r.mu.Unlock()
	for _, v := range versions {
		if v.object != nil && bytes.Equal(v.text, text) {
			return v.object.DeepCopyObject().(client.Object)
		}
	}
	return nil
}

// add keeps an object as the latest version, and returns a copy of it.
func (r *recentObjects) add(k kube.Key, text []byte, object client.Object) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions, isKept := r.byKey[k]
	if !isKept {
		if r.byKey == nil {
			r.byKey = make(map[kube.Key][2]decodedObject)
		}
		if len(r.order) == maxRecentObjects {
			delete(r.byKey, r.order[0])
			r.order = append(r.order[:0], r.order[1:]...)
		}
		r.order = append(r.order, k)
	}
	r.byKey[k] = [2]decodedObject{{text, object}, versions[0]}
	return object.DeepCopyObject().(client.Object)
}
