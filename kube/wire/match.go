package wire

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Match is a condition on the objects of a list by which servers cannot select. A handler
// that answers the list from a cache applies the condition. The client applies the condition
// to the answer of a server.
type Match struct {
	// Owner is the uid that one of the ownerReferences must have. It is empty for any owners.
	Owner types.UID
	// Index is the index in which the object must have Value. It is nil for any values.
	Index Index
	Value string
}

// Matches reports whether an object, which is JSON, meets the condition. The error is the error
// of [Index.Values].
func (m Match) Matches(object []byte) (bool, error) {
	if m.Owner != "" &&
		!slices.ContainsFunc(ownersOf(object), func(o metav1.OwnerReference) bool { return o.UID == m.Owner }) {
		return false, nil
	}
	if m.Index == nil {
		return true, nil
	}
	values, err := m.Index.Values(object)
	return slices.Contains(values, m.Value), err
}

// ownersOf returns the owner references of an object, which is JSON. An object that cannot be read has
// none.
func ownersOf(object []byte) []metav1.OwnerReference {
	var answer ident.Answer
	var owners []metav1.OwnerReference
	if kubejson.Unmarshal(object, &answer) != nil || len(answer.Metadata.OwnerReferences) == 0 ||
		kubejson.Unmarshal(answer.Metadata.OwnerReferences, &owners) != nil {
		return nil
	}
	return owners
}

// matching returns the objects that meet all matches. It reuses the memory of objects.
func matching(matches []Match, objects []jsontext.Value) ([]jsontext.Value, error) {
	if len(matches) == 0 {
		return objects, nil
	}
	var errs []error
	objects = slices.DeleteFunc(objects, func(object jsontext.Value) bool {
		for _, m := range matches {
			ok, err := m.Matches(object)
			errs = append(errs, err)
			if !ok {
				return true
			}
		}
		return false
	})
	return objects, errors.Join(errs...)
}

// Index finds the objects of one resource by values: see kube.NewIndex, which makes one. Its methods are safe for
// concurrent use. An Index is comparable.
type Index interface {
	// String returns the name of the index.
	String() string
	// Check returns an error unless the index can be used for the objects of r in the given representation.
	Check(r Resource, representation Representation) error
	// Values returns the values of an object, which is JSON.
	Values(object []byte) ([]string, error)
}
