package cache

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// isDeletionPending reports whether finalizers or a grace period keep an object that is being deleted. m is the
// metadata in body, which a server has answered r with.
func isDeletionPending(r *wire.Request, m ident.Metadata, body []byte) bool {
	if len(m.Finalizers) > 0 || m.DeletionGracePeriodSeconds > 0 {
		return true
	}
	if r.Resource.Group != "" || r.Resource.Plural != "namespaces" {
		return false
	}
	// Namespaces have another place for finalizers.
	var namespace struct {
		Spec struct {
			Finalizers []string `json:"finalizers"`
		} `json:"spec"`
	}
	return kube.Unmarshal(body, &namespace) == nil && len(namespace.Spec.Finalizers) > 0
}

// metadataOf returns an object without its content.
func metadataOf(object []byte) ([]byte, error) {
	var o struct {
		Kind       string         `json:"kind"`
		APIVersion string         `json:"apiVersion"`
		Metadata   jsontext.Value `json:"metadata"`
	}
	if err := kube.Unmarshal(object, &o); err != nil {
		return nil, err
	}
	o.Kind, o.APIVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	return kube.Marshal(o)
}
