package database

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// Item is one version of an object, as a server sent it.
type Item struct {
	key     kube.Key
	version ident.Version
	json    []byte
	// metadata are the members of the metadata in json, perhaps without managedFields. It is empty if they are unknown.
	metadata []jsonscan.Member
}

// NewItem returns the Item of a version of an object. The Cluster of the key does not count.
func NewItem(k kube.Key, uid types.UID, resourceVersion string, json []byte) Item {
	return Item{key: k, version: ident.NewVersion(uid, resourceVersion), json: json}
}

// WithMetadata returns i with the members of its metadata, so that the metadata are not searched for in the JSON
// again. The managedFields do not count.
func (i Item) WithMetadata(members []jsonscan.Member) Item {
	i.metadata = members
	return i
}
