package watch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// Change is one step of a stream, over bytes.
type Change struct {
	Type   ChangeType
	Record Record
	// Object is the object as the server sent it, valid until the next Change. It is nil
	// for a deletion that was not observed itself, and for changes that concern no object.
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
	// ChangeBookmark reports that the stream has reached the resourceVersion in its Record
	// without any change.
	ChangeBookmark
	// ChangeListStarted begins a list: until the next ChangeListed, the versions of objects
	// are in no order. A list that fails is followed by another ChangeListStarted.
	ChangeListStarted
	// ChangeWatchOpened reports that a watch is open: the server has accepted it, and from now
	// on sends every change. A watch that begins with a list is open from the end of that
	// list on, after its ChangeListed.
	ChangeWatchOpened
	// ChangeWatchEnded reports that the open watch has ended, for whatever reason, or has been
	// silent for longer than a server may be. Until the next ChangeWatchOpened, the state may
	// be older than that of the server by any time. The end of the sequence itself also ends
	// the watch, without this change.
	ChangeWatchEnded
)

// Record is what a stream itself has to know of an object.
type Record struct {
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
}

// recordOf reads the record of an object, which is well formed. What follows the metadata is
// not looked at.
func recordOf(s kube.Stream, object []byte) (Record, error) {
	var r Record
	scan := jsonscan.New(object)
	_, err := scan.Find("metadata")
	if err == nil {
		err = scan.Members(func(name []byte) error {
			switch string(name) {
			case "namespace":
				return readText(&scan, &r.Namespace)
			case "name":
				return readText(&scan, &r.Name)
			case "uid":
				return readText(&scan, &r.UID)
			case "resourceVersion":
				return readText(&scan, &r.ResourceVersion)
			}
			return scan.Skip()
		})
	}
	if err == nil && r.Name == "" {
		err = errNoName
	}
	if err != nil {
		return Record{}, &kube.DecodeError{Ref: refOf(s, r), ResourceVersion: r.ResourceVersion, Err: err}
	}
	return r, nil
}

func readText[S ~string](scan *jsonscan.Scanner, into *S) error {
	text, err := scan.TextOrNull()
	*into = S(text)
	return err
}

func refOf(s kube.Stream, r Record) kube.Ref {
	return kube.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}
