package cache

import (
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// objectAnswer holds the parts of an answer that describe the object.
type objectAnswer struct {
	Kind     string         `json:"kind"`
	Metadata answerMetadata `json:"metadata"`
	Spec     jsontext.Value `json:"spec"`
	Details  struct {
		UID types.UID `json:"uid"`
	} `json:"details"`
}

// isHeld reports whether finalizers or a grace period keep an object that is being deleted.
func (a objectAnswer) isHeld(r *kube.Request) bool {
	if len(a.Metadata.Finalizers) > 0 || a.Metadata.Grace > 0 {
		return true
	}
	if r.Resource.Group != "" || r.Resource.Plural != "namespaces" {
		return false
	}
	// Namespaces have another place for finalizers.
	var spec struct {
		Finalizers []string `json:"finalizers"`
	}
	return kube.Unmarshal(a.Spec, &spec) == nil && len(spec.Finalizers) > 0
}

// answerMetadata is metadata of an object that a request was answered with.
type answerMetadata struct {
	Namespace         string         `json:"namespace"`
	Name              string         `json:"name"`
	UID               types.UID      `json:"uid"`
	ResourceVersion   string         `json:"resourceVersion"`
	Labels            jsontext.Value `json:"labels"`
	DeletionTimestamp *string        `json:"deletionTimestamp"`
	Grace             int64          `json:"deletionGracePeriodSeconds"`
	Finalizers        []string       `json:"finalizers"`
}

func (m answerMetadata) version() ident.Version { return ident.NewVersion(m.UID, m.ResourceVersion) }

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
