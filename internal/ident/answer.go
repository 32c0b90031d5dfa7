package ident

import (
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
)

// Answer has the members of a server's answer that show the object of the answer, and what has become
// of the object. A member that the answer lacks is zero.
type Answer struct {
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	// Details belong to the Status that the server sends in place of a deleted object.
	Details struct {
		UID types.UID `json:"uid"`
	} `json:"details"`
}

// Metadata has the metadata of an object as the server sent them. The members that few readers need
// are not decoded.
type Metadata struct {
	Namespace                  string         `json:"namespace"`
	Name                       string         `json:"name"`
	UID                        types.UID      `json:"uid"`
	ResourceVersion            string         `json:"resourceVersion"`
	Generation                 int64          `json:"generation"`
	DeletionTimestamp          *string        `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds int64          `json:"deletionGracePeriodSeconds"`
	Finalizers                 []string       `json:"finalizers"`
	Labels                     jsontext.Value `json:"labels"`
	Annotations                jsontext.Value `json:"annotations"`
	OwnerReferences            jsontext.Value `json:"ownerReferences"`
	ManagedFields              jsontext.Value `json:"managedFields"`
}

// Version returns the uid and the resource version.
func (m Metadata) Version() Version { return NewVersion(m.UID, m.ResourceVersion) }
