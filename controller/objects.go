package controller

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// objects is what a controller remembers of each object with which something has gone wrong,
// until that is over or the object is gone: of the others there is nothing to remember.
type objects struct {
	mu    sync.Mutex
	known map[queue.Key]*object
}

// object is the record of one object. Only the worker that has its key uses it, uid apart,
// which objects.mu guards.
type object struct {
	// uid is empty as long as the object could not be read.
	uid types.UID
	// wrong is how many calls in a row have gone wrong, in whatever way; failures leaves
	// conflicts out, and is what the policy is asked about; conflicts are those in a row.
	wrong, failures, conflicts int
	told                       teller
}

// of is the record of an object: a new one, if another has taken the name. An empty uid is
// any.
func (o *objects) of(k queue.Key, uid types.UID) *object {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.known[k]
	if !ok || uid != "" && known.uid != "" && known.uid != uid {
		known = &object{}
		o.known[k] = known
	}
	if uid != "" {
		known.uid = uid
	}
	return known
}

// drop forgets an object that is gone. An empty uid is any.
func (o *objects) drop(k queue.Key, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.known[k]; ok && (uid == "" || known.uid == uid) {
		delete(o.known, k)
	}
}

// teller tells what is new from what was said before.
type teller struct {
	said  string
	times int
}

// worthTelling tells whether a text should be told, and not only counted: when it is new,
// and then at the second, the fourth, the eighth time.
func (t *teller) worthTelling(text string) bool {
	if t.first(text) {
		return true
	}
	return t.times&(t.times-1) == 0
}

// first counts a text, and tells whether it is new.
func (t *teller) first(text string) bool {
	if text != t.said {
		t.said, t.times = text, 0
	}
	t.times++
	return t.times == 1
}

// edition tells changes of an object that somebody made from those that only concern its
// status.
func edition(obj kube.Object, err error) string {
	if misfit, ok := errors.AsType[*kube.DecodeError](err); ok {
		return misfit.ResourceVersion
	}
	switch {
	case obj == nil:
		return ""
	case obj.GetGeneration() == 0: // of a kind that does not count
		return obj.GetResourceVersion()
	default:
		return fmt.Sprint(obj.GetGeneration(), obj.GetLabels(), obj.GetAnnotations())
	}
}
