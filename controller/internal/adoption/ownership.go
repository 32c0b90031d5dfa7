package adoption

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The functions of this file find out whether an object names an owner: by an owner reference, or by an owner label,
// which is a label of controller.OwnsByLabel.

// hasController reports whether the object in body has a controlling owner reference to owner.
func hasController(body []byte, owner types.UID) (found bool) {
	if owner == "" || !bytes.Contains(body, []byte(owner)) {
		return false
	}
	s := jsonscan.New(body)
	for _, member := range []string{"metadata", "ownerReferences"} {
		if ok, err := s.Find(member); err != nil || !ok {
			return false
		}
	}
	more, err := s.Enter('[')
	for more && err == nil {
		if more, err = s.NextElement(']'); !more || err != nil {
			break
		}
		var uid []byte
		var controls bool
		err = s.Members(func(name []byte) (err error) {
			switch string(name) {
			case "uid":
				uid, err = s.TextOrNull()
			case "controller":
				controls, err = s.Boolean()
			default:
				err = s.Skip()
			}
			return err
		})
		found = found || controls && string(uid) == string(owner)
	}
	return found && err == nil
}

// isOwnedBy reports whether owners name owner, and no other owner controls the object.
func isOwnedBy(owners []kube.Owner, owner wire.Ref) bool {
	isNamed := false
	for _, o := range owners {
		if o.UID == owner.UID {
			isNamed = true
		} else if o.Controller {
			return false
		}
	}
	return isNamed
}

// isEarlierOwner reports whether the reference names an object that had the name of owner.
func isEarlierOwner(o metav1.OwnerReference, owner wire.Ref) bool {
	version, err := schema.ParseGroupVersion(o.APIVersion)
	return err == nil && o.UID != owner.UID && version.Group == owner.Resource.Group && o.Kind == owner.Resource.Kind &&
		o.Name == owner.Name
}

// hasOwnerLabel reports whether the object in body has the uid of owner in one of ownerLabels.
func hasOwnerLabel(body []byte, owner types.UID, ownerLabels []string) bool {
	if len(ownerLabels) == 0 || owner == "" || !bytes.Contains(body, []byte(owner)) {
		return false
	}
	var object metav1.PartialObjectMetadata
	return kube.Unmarshal(body, &object) == nil && labelsNameOwner(object.Labels, owner, ownerLabels)
}

// labelsNameOwner reports whether the labels of an object include one of ownerLabels with the uid of owner.
func labelsNameOwner(labels map[string]string, owner types.UID, ownerLabels []string) bool {
	return owner != "" &&
		slices.ContainsFunc(ownerLabels, func(label string) bool { return labels[label] == string(owner) })
}
