package follow

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// identity is what identifies one version of an object.
type identity struct {
	key             kube.Key
	uid             types.UID
	resourceVersion string
	// isKeyKnown reports whether the key could be read. It can be known although the rest is not.
	isKeyKnown bool
}

var errNoName = errors.New("it has no name")

// readIdentity returns the identity of an object, which is well-formed JSON. It does not read what follows the
// metadata. The error is a *wire.DecodeError.
func readIdentity(s wire.Stream, object []byte) (id identity, err error) {
	id.key.Cluster = s.Cluster
	scan := jsonscan.New(object)
	_, err = scan.Find("metadata")
	if err == nil {
		err = scan.Members(func(name []byte) error {
			switch string(name) {
			case "namespace":
				return readText(&scan, &id.key.Namespace)
			case "name":
				return readText(&scan, &id.key.Name)
			case "uid":
				return readText(&scan, &id.uid)
			case "resourceVersion":
				return readText(&scan, &id.resourceVersion)
			}
			return scan.Skip()
		})
	}
	if err == nil && id.key.Name == "" {
		err = errNoName
	}
	if err != nil {
		id.isKeyKnown = id.key.Name != "" && (id.key.Namespace != "") != s.Resource.ClusterScoped
		return id, &wire.DecodeError{
			Ref: refOf(s, id.key, id.uid), ResourceVersion: id.resourceVersion, Err: err,
		}
	}
	id.isKeyKnown = true
	return id, nil
}

// version returns the uid and the resource version.
func (id identity) version() ident.Version { return ident.NewVersion(id.uid, id.resourceVersion) }

// change returns a change of the object.
func (id identity) change(t ChangeType, object []byte) Change {
	return Change{Type: t, Key: id.key, UID: id.uid, ResourceVersion: id.resourceVersion, Object: object}
}

func readText[S ~string](scan *jsonscan.Scanner, into *S) error {
	text, err := scan.TextOrNull()
	*into = S(text)
	return err
}

func refOf(s wire.Stream, k kube.Key, uid types.UID) wire.Ref {
	return wire.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: k.Namespace, Name: k.Name, UID: uid}
}
