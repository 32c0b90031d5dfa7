package kube

import (
	"errors"
	"fmt"
)

// Patch is a change to parts of an object. What cannot be encoded is an error of the
// request that it is used for.
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

// check refuses before any request what the server would refuse, in words that say what
// to write.
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
	case p.contentType == ContentJSONPatch && first != '[':
		return errors.New("the JSON patch has no operations")
	case p.contentType != ContentJSONPatch && first != '{':
		return fmt.Errorf("a merge patch must encode as a JSON object, such as a map does, and not as %.40s", p.body)
	}
	return nil
}

// MergePatch sets what v says, and removes what it says is null; lists are replaced as a
// whole (RFC 7386). v is anything that encodes as JSON, such as a map.
func MergePatch(v any) Patch { return newPatch(ContentMergePatch, v) }

// StrategicPatch is a merge patch that knows which lists are keyed. Custom resources do
// not have it.
func StrategicPatch(v any) Patch { return newPatch(ContentStrategicPatch, v) }

// JSONPatch does one operation after the other, or none if one of them fails (RFC 6902),
// in which case the server's answer is 422: see [IsInvalid].
func JSONPatch(operations ...PatchOperation) Patch {
	return newPatch(ContentJSONPatch, operations)
}

// PatchOperation is one step of a JSON patch. Paths are JSON pointers: "/spec/replicas".
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// TestAt goes on only if the value at path is v.
func TestAt(path string, v any) PatchOperation { return PatchOperation{"test", path, value(v)} }

// AddAt sets a member, or inserts before an element; the path "/list/-" is the list's end.
func AddAt(path string, v any) PatchOperation { return PatchOperation{"add", path, value(v)} }

// ReplaceAt replaces a value that is there.
func ReplaceAt(path string, v any) PatchOperation { return PatchOperation{"replace", path, value(v)} }

// RemoveAt removes a value that is there.
func RemoveAt(path string) PatchOperation { return PatchOperation{Op: "remove", Path: path} }

// value keeps omitempty from dropping a value that is meant: a pointer is never empty.
func value(v any) any { return &v }
