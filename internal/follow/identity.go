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
	// metadata are the members of the metadata: see [Change.Metadata].
	metadata []jsonscan.Member
}

var errNoName = errors.New("it has no name")

// readIdentity returns the identity of an object, which is well-formed JSON. It does not read what follows the
// metadata. The members of the metadata take the place of members, which may be nil. The error is a *wire.DecodeError.
func readIdentity(s wire.Stream, object []byte, members []jsonscan.Member) (id identity, err error) {
	id.key.Cluster, id.metadata = s.Cluster, members[:0]
	scan := jsonscan.New(object)
	_, err = scan.Find("metadata")
	if err == nil {
		err = scan.Members(func(name []byte) error {
			value, err := scan.Raw()
			if err != nil || string(name) == "managedFields" {
				return err
			}
			id.metadata = append(id.metadata, jsonscan.Member{Name: name, Value: value})
			switch string(name) {
			case "namespace":
				return readText(value, &id.key.Namespace)
			case "name":
				return readText(value, &id.key.Name)
			case "uid":
				return readText(value, &id.uid)
			case "resourceVersion":
				return readText(value, &id.resourceVersion)
			}
			return nil
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
	return Change{
		Type: t, Key: id.key, UID: id.uid, ResourceVersion: id.resourceVersion, Object: object, Metadata: id.metadata,
	}
}

func readText[S ~string](value []byte, into *S) error {
	scan := jsonscan.New(value)
	text, err := scan.TextOrNull()
	*into = S(text)
	return err
}

func refOf(s wire.Stream, k kube.Key, uid types.UID) wire.Ref {
	return wire.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: k.Namespace, Name: k.Name, UID: uid}
}
