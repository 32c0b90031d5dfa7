package watch

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// Change is one step of a stream. Its Type determines which of the other fields are set.
type Change struct {
	Type ChangeType
	// Key names the object of ChangeAdded, ChangeModified and ChangeDeleted.
	Key kube.Key
	// UID is the uid of that object.
	UID types.UID
	// ResourceVersion is the version of that object. For a deletion that was observed, it is the
	// version of the deletion; for any other deletion, it is the last version that was observed.
	// For ChangeListed and ChangeBookmark it is the version that the stream has reached.
	ResourceVersion string
	// Object is the object as the server sent it, in JSON, valid until the next Change. It is nil
	// for a deletion that was not observed itself, and for changes that concern no object.
	Object []byte
}

// ChangeType is the kind of a Change.
type ChangeType int

const (
	// ChangeAdded adds an object to the stream.
	ChangeAdded ChangeType = iota + 1
	// ChangeModified replaces an object of the stream by another version of it.
	ChangeModified
	// ChangeDeleted removes an object from the stream.
	ChangeDeleted
	// ChangeListStarted begins a list: until the next ChangeListed, the versions of objects
	// are in no order. A list that fails is followed by another ChangeListStarted.
	ChangeListStarted
	// ChangeListed ends a list: the changes so far make up the whole state at its
	// ResourceVersion. That version is lower than an earlier one only if the server was
	// restored from a backup.
	ChangeListed
	// ChangeBookmark reports that the stream has reached its ResourceVersion without any
	// change.
	ChangeBookmark
	// ChangeWatchOpened reports that a watch is open: the server has accepted it, and from now
	// on sends every change. A watch that begins with a list is open from the end of that
	// list on, after its ChangeListed.
	ChangeWatchOpened
	// ChangeWatchEnded reports that the open watch has ended, for whatever reason, or was
	// silent for too long. Until the next ChangeWatchOpened, the state may be older than the
	// server's state by any time. The end of the sequence itself also ends the watch, without
	// this change.
	ChangeWatchEnded
)

var errNoName = errors.New("it has no name")

// readIdentity returns key, uid and resource version of an object, which is well-formed JSON.
// It does not read what follows the metadata. The error is a *kube.DecodeError; named then
// reports whether the key could be read all the same.
func readIdentity(s kube.Stream, object []byte) (id Change, named bool, err error) {
	id.Key.Cluster = s.Cluster
	scan := jsonscan.New(object)
	_, err = scan.Find("metadata")
	if err == nil {
		err = scan.Members(func(name []byte) error {
			switch string(name) {
			case "namespace":
				return readText(&scan, &id.Key.Namespace)
			case "name":
				return readText(&scan, &id.Key.Name)
			case "uid":
				return readText(&scan, &id.UID)
			case "resourceVersion":
				return readText(&scan, &id.ResourceVersion)
			}
			return scan.Skip()
		})
	}
	if err == nil && id.Key.Name == "" {
		err = errNoName
	}
	if err != nil {
		named = id.Key.Name != "" && (id.Key.Namespace != "") != s.Resource.ClusterScoped
		return id, named, &kube.DecodeError{
			Ref: refOf(s, id.Key, id.UID), ResourceVersion: id.ResourceVersion, Err: err,
		}
	}
	return id, true, nil
}

func readText[S ~string](scan *jsonscan.Scanner, into *S) error {
	text, err := scan.TextOrNull()
	*into = S(text)
	return err
}

func refOf(s kube.Stream, k kube.Key, uid types.UID) kube.Ref {
	return kube.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: k.Namespace, Name: k.Name, UID: uid}
}
