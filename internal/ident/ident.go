// Package ident has what all packages need to identify objects:
//
//   - [Version] and [UID] keep a resource version and a uid in little memory, and compare them.
//   - [Answer] and [Metadata] are the members of a server's answer that identify its object.
//   - [Quoted] and [GoTypeName] name an object and a Go type in errors.
//   - [ConversionPrefix] and [IncompleteAnnotation] are keys of annotations.
package ident

import (
	"encoding/hex"
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hashSeed is the seed of all hashes of one process, so that they can be compared.
var hashSeed = maphash.MakeSeed()

// UID is the short form of a uid, which may be empty: the 16 bytes of a uid that is written as
// all servers write it, and otherwise a hash.
type UID [16]byte

// NewUID returns the short form of text. exact reports whether String returns text. If it does
// not, the UID is a hash, and text itself has to be kept too.
func NewUID(text string) (u UID, exact bool) {
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		var digits [32]byte
		copy(digits[:], text[:8])
		copy(digits[8:], text[9:13])
		copy(digits[12:], text[14:18])
		copy(digits[16:], text[19:23])
		copy(digits[20:], text[24:])
		if _, err := hex.Decode(u[:], digits[:]); err == nil && u != (UID{}) && isSameText(u.text(), text) {
			return u, true
		}
	}
	if text == "" {
		return UID{}, true
	}
	h := maphash.String(hashSeed, text)
	for i := range 8 {
		u[i] = byte(h >> (8 * i))
	}
	return u, false
}

// String returns the uid as servers write it.
func (u UID) String() types.UID {
	b := u.text()
	return types.UID(b[:])
}

// text returns the uid as servers write it, without an allocation.
func (u UID) text() (b [36]byte) {
	hex.Encode(b[:], u[:4])
	hex.Encode(b[9:], u[4:6])
	hex.Encode(b[14:], u[6:8])
	hex.Encode(b[19:], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return b
}

func isSameText(a [36]byte, b string) bool { return string(a[:]) == b }

// Quoted returns the namespace and the name of an object as errors show them: "shop/web", or "web" without a namespace.
func Quoted(namespace, name string) string {
	if namespace == "" {
		return strconv.Quote(name)
	}
	return strconv.Quote(namespace + "/" + name)
}

const (
	// ConversionPrefix is the beginning of the keys of the annotations in which conversions between versions keep what a
	// version cannot express.
	ConversionPrefix = "versions.yare.dev/"
	// IncompleteAnnotation is the key of the annotation of an object from which a conversion has left something out.
	IncompleteAnnotation = ConversionPrefix + "incomplete"
)

// UnstructuredPackage is the package of unstructured.Unstructured.
const UnstructuredPackage = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// StandsForAnyKind reports whether a Go type stands for objects of any kind: it is
// unstructured.Unstructured or metav1.PartialObjectMetadata.
func StandsForAnyKind(t reflect.Type) bool {
	// Naming Unstructured here would link it into every program.
	return t == reflect.TypeFor[metav1.PartialObjectMetadata]() ||
		t.PkgPath() == UnstructuredPackage && t.Name() == "Unstructured"
}

// GoTypeName returns the name of a Go type as its user knows it. A custom resource is named
// after its spec.
func GoTypeName(t reflect.Type) string {
	name := t.String()
	if strings.HasPrefix(name, "kube.CustomResource[") {
		if spec, ok := t.FieldByName("Spec"); ok {
			return "the custom resource of " + spec.Type.String()
		}
	}
	return name
}
