package kube

import (
	"errors"
	"fmt"

	"github.com/yare-go/yare/kube/wire"
)

// Patch describes a change to parts of an object. If a Patch cannot be encoded, the method that gets the
// Patch returns the error.
type Patch struct {
	contentType string
	body        []byte
	err         error
}

func newPatch(contentType string, v any) Patch {
	body, err := Marshal(v)
	if err != nil {
		err = fmt.Errorf("encode a patch: %w", err)
	}
	return Patch{contentType: contentType, body: body, err: err}
}

// check returns an error for a patch that the server would refuse. The error says what to write.
func (p Patch) check() error {
	first := byte(0)
	if len(p.body) > 0 {
		first = p.body[0]
	}
	switch {
	case p.err != nil:
		return p.err
	case p.contentType == "":
		return errors.New("the patch is empty: make one with kube.MergePatch, kube.JSONPatch or kube.StrategicPatch")
	case p.contentType == wire.ContentJSONPatch && first != '[':
		return errors.New("the JSON patch has no operations")
	case p.contentType != wire.ContentJSONPatch && first != '{':
		return fmt.Errorf("a merge patch must encode as a JSON object, such as a map does, and not as %.40s", p.body)
	}
	return nil
}

// MergePatch returns a patch that sets the members of v. The patch removes the members that are null in v.
// Lists are replaced as a whole (RFC 7386). v is anything that encodes as a JSON object, such as a map.
func MergePatch(v any) Patch { return newPatch(wire.ContentMergePatch, v) }

// StrategicPatch returns a strategic merge patch. For this patch, the server knows which lists are keyed.
// Custom resources do not support strategic merge patches.
func StrategicPatch(v any) Patch { return newPatch(wire.ContentStrategicPatch, v) }

// JSONPatch returns a patch that does one operation after the other (RFC 6902). If one operation
// fails, the object stays as it is, and the server answers 422: see [IsInvalid].
func JSONPatch(operations ...PatchOperation) Patch {
	return newPatch(wire.ContentJSONPatch, operations)
}

// PatchOperation is one step of a JSON patch. Op is the name of the operation (RFC 6902). Paths are
// JSON pointers: "/spec/replicas".
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// TestAt returns an operation that fails unless the value at path is v.
func TestAt(path string, v any) PatchOperation { return PatchOperation{"test", path, value(v)} }

// AddAt returns an operation that sets a member, or inserts before an element. The path
// "/list/-" is the end of a list.
func AddAt(path string, v any) PatchOperation { return PatchOperation{"add", path, value(v)} }

// ReplaceAt returns an operation that replaces a value. The value must exist.
func ReplaceAt(path string, v any) PatchOperation { return PatchOperation{"replace", path, value(v)} }

// RemoveAt returns an operation that removes a value. The value must exist.
func RemoveAt(path string) PatchOperation { return PatchOperation{Op: "remove", Path: path} }

// value returns a pointer to v, so that omitempty does not drop a zero value.
func value(v any) any { return &v }
