package kube

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/kube/internal/jsonplan"
)

// jsonOptions are the rules of Kubernetes: the rules of encoding/json, but names must match in
// case. The fixtures of k8s.io/api are the test.
var jsonOptions = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	jsontext.EscapeForHTML(false),
)

// onePassOptions are jsonOptions without the pass over the whole text that encoding/json makes
// before it decodes. A text that decodes without an error by one of the two decodes to the same value by
// the other.
var onePassOptions = json.JoinOptions(jsonOptions, jsonv1.ReportErrorsWithLegacySemantics(false))

// Unmarshal decodes JSON by the rules of Kubernetes: the rules of encoding/json, but names must
// match in case.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, jsonOptions) }

// newPlanDecoder returns a decoder for unmarshalPlanned.
func newPlanDecoder() *jsonplan.Decoder { return jsonplan.NewDecoder(onePassOptions) }

// unmarshalPlanned decodes as unmarshalNew does, in less time.
func unmarshalPlanned(d *jsonplan.Decoder, data []byte, into any) error {
	if d.Decode(data, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return unmarshalNew(data, into)
}

// unmarshalNew decodes as Unmarshal does, in less time. into points to a zero value.
func unmarshalNew(data []byte, into any) error {
	if json.Unmarshal(data, into, onePassOptions) == nil {
		return nil
	}
	// The rules of encoding/json decide. They ignore mistakes in the tags of a struct, and they
	// leave what is not JSON alone.
	reflect.ValueOf(into).Elem().SetZero()
	return Unmarshal(data, into)
}

// Marshal encodes JSON by the rules of Kubernetes.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, jsonOptions) }

// DecodeError describes an object that the server sent and that does not fit its Go type. Ref and
// ResourceVersion have only what could be read of the object's metadata. Err is the cause.
type DecodeError struct {
	Ref             Ref
	ResourceVersion string
	Err             error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s: %v", e.Ref, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// decode returns the object that data encodes, and fills in its kind, which the items of
// lists lack.
func (a API[T]) decode(data []byte) (*T, error) {
	t := new(T)
	if err := a.decodeInto(data, a.object(t)); err != nil {
		return nil, err
	}
	return t, nil
}

// decodeInto decodes data into obj, and fills in its kind. An error is a [*DecodeError].
func (a resourceView) decodeInto(data []byte, obj Object) error {
	if err := a.client.decodeInto(data, obj); err != nil {
		return a.decodeError(data, err)
	}
	if a.representation == MetadataOnly {
		// The server sends the kind PartialObjectMetadata. The kind of the object is more useful.
		obj.GetObjectKind().SetGroupVersionKind(a.resource.GroupVersionKind)
	} else if kind := obj.GetObjectKind(); kind.GroupVersionKind().Kind == "" {
		kind.SetGroupVersionKind(a.resource.GroupVersionKind)
	}
	return nil
}

// decodeInto decodes data into obj, which is new, as Unmarshal does. It does not call the JSON method of an
// unstructured object, which refuses objects without a kind, such as the items of most lists. c may be nil.
func (c *Client) decodeInto(data []byte, obj Object) error {
	u, ok := obj.(interface{ SetUnstructuredContent(map[string]any) })
	if !ok {
		if c == nil {
			return unmarshalNew(data, obj)
		}
		return unmarshalPlanned(c.decoder, data, obj)
	}
	content := make(map[string]any)
	if err := utiljson.Unmarshal(data, &content); err != nil { // integers stay integers
		return err
	}
	u.SetUnstructuredContent(content)
	return nil
}

// openObject returns the beginning of the JSON of an object of r: its apiVersion and its kind.
func openObject(r Resource, size int) []byte {
	dst := make([]byte, 0, size+len(r.Group)+len(r.Version)+len(r.Kind)+32)
	dst = appendString(append(dst, `{"apiVersion":`...), r.GroupVersion().String())
	return appendString(append(dst, `,"kind":`...), r.Kind)
}

// withKind returns the JSON of an object with the kind of r in place of its own.
func withKind(object []byte, r Resource) ([]byte, error) {
	d := jsonDecoder(object)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("it is no JSON object"), err)
	}
	dst := openObject(r, len(object))
	for d.PeekKind() != '}' {
		name, err := readName(d)
		if err != nil {
			return nil, err
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if name != "apiVersion" && name != "kind" {
			dst = append(append(appendString(append(dst, ','), name), ':'), value...)
		}
	}
	return append(dst, '}'), nil
}

// jsonDecoder returns a decoder of what Marshal wrote.
func jsonDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (a resourceView) decodeError(data []byte, err error) error {
	e := &DecodeError{Ref: Ref{Cluster: a.client.cluster, Resource: a.resource}, Err: err}
	var meta struct {
		Metadata struct {
			Namespace       string    `json:"namespace"`
			Name            string    `json:"name"`
			ResourceVersion string    `json:"resourceVersion"`
			UID             types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if Unmarshal(data, &meta) == nil {
		e.Ref.Namespace, e.Ref.Name = meta.Metadata.Namespace, meta.Metadata.Name
		e.Ref.UID, e.ResourceVersion = meta.Metadata.UID, meta.Metadata.ResourceVersion
	}
	return e
}

// list is one page of a list with items that are not decoded.
type list struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []jsontext.Value `json:"items"`
}

// Decode returns the object that data encodes, as the server sent it, with its kind filled
// in. An error is a [*DecodeError].
func (a API[T]) Decode(data []byte) (*T, error) { return a.decode(data) }

// Named returns a T that has only its identity.
func (a API[T]) Named(namespace, name string, uid types.UID, resourceVersion string) *T {
	t := new(T)
	obj := a.object(t)
	obj.GetObjectKind().SetGroupVersionKind(a.resource.GroupVersionKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(uid)
	obj.SetResourceVersion(resourceVersion)
	return t
}
