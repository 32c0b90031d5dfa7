package relation

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// Map connects objects by a map function of the author.
type Map struct {
	usual
	Watched kube.Resource
	// Function decodes an object and calls the author's function. It returns a panic as an error.
	Function func(ctx context.Context, c *kube.Client, object []byte) ([]kube.Key, error)
}

// IsSlow returns true, because the map function is the author's.
func (Map) IsSlow() bool { return true }

// Keys returns the keys that the map function returns for o.
func (m Map) Keys(ctx context.Context, o Object, to Kind) (keys []Key, err error) {
	object, err := o.Content()
	if err != nil {
		return nil, err
	}
	returned, err := m.Function(ctx, to.Client, object)
	for _, k := range returned {
		switch {
		case k.Name == "": // such as the value of a label that the object does not have
			continue
		case to.Resource.ClusterScoped:
			k.Namespace = ""
		case k.Namespace == "":
			if err == nil {
				err = &LastingError{fmt.Errorf("the map function of %s returned a key without a namespace: %q, although %s live in namespaces", m.Watched, k.Name, to.Resource)}
			}
			continue
		}
		keys = append(keys, Key{Key: k})
	}
	return keys, err
}
