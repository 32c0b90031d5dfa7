package watch

import (
	"github.com/yare-go/yare/kube"
	"k8s.io/apimachinery/pkg/types"
)

// Change is one step of a stream, over bytes.
type Change struct {
	Type   ChangeType
	Record Record
	// Object is the object as the server sent it, valid until the next Change. It is nil
	// for a deletion that was not seen itself, and for what is about no object.
	Object []byte
}

// ChangeType says what happened.
type ChangeType int

const (
	// ChangeAdded is an object that the stream had not.
	ChangeAdded ChangeType = iota + 1
	// ChangeModified is another version of an object that the stream had.
	ChangeModified
	// ChangeDeleted is an object that the stream has no more.
	ChangeDeleted
	// ChangeListed ends a list: the changes so far make up the whole state. It comes after
	// the initial list and after each that had to be made later. Its Record holds the
	// resourceVersion of the list.
	ChangeListed
	// ChangeBookmark says that the stream has got as far as the resourceVersion in its
	// Record, without any change.
	ChangeBookmark
)

// Record is what a stream itself has to know of an object.
type Record struct {
	Namespace       string    `json:"namespace"`
	Name            string    `json:"name"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

type key struct{ namespace, name string }

func (r Record) key() key { return key{r.Namespace, r.Name} }

// recordOf reads the record of an object.
func recordOf(s kube.Stream, object []byte) (Record, error) {
	var o struct {
		Metadata Record `json:"metadata"`
	}
	err := kube.Unmarshal(object, &o)
	if err == nil && o.Metadata.Name == "" {
		err = errNoName
	}
	if err != nil {
		return Record{}, &kube.DecodeError{Ref: refOf(s, o.Metadata), ResourceVersion: o.Metadata.ResourceVersion, Err: err}
	}
	return o.Metadata, nil
}

func refOf(s kube.Stream, r Record) kube.Ref {
	return kube.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}
