package explore

import (
	"fmt"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/kube"
)

// State holds the objects of a run at one moment. A check must not keep it.
type State struct {
	state history.State
	// failure is why an object could not be decoded.
	failure *error
}

// Objects returns the objects of a type that exist in a state, by name. The caller may change them. A check
// in which an object does not fit its type has failed, whatever the check returns.
func Objects[T any, P kube.ObjectOf[T]](s State) []*T {
	resource, err := kube.ResourceOf[T, P]()
	if err != nil {
		*s.failure = err
		return nil
	}
	var objects []*T
	for _, v := range s.state.Objects() {
		if v.Resource != resource.String() {
			continue
		}
		object := new(T)
		data, err := kube.Marshal(v.Object)
		if err == nil {
			err = kube.Unmarshal(data, object)
		}
		if err != nil {
			*s.failure = fmt.Errorf("decode %s %s: %w", resource, v.Name, err)
			continue
		}
		objects = append(objects, object)
	}
	return objects
}
