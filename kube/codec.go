package kube

import (
	"bytes"
	"context"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
	"github.com/yare-go/yare/kube/internal/jsonplan"
	"github.com/yare-go/yare/kube/wire"
)

// Unmarshal decodes JSON by the rules of Kubernetes (sigs.k8s.io/json). These are the rules of encoding/json, with two
// exceptions. Names must match in case. In a value of the type any, an integer that fits is an int64, and any other
// number is a float64. In a named interface type, as of type Value interface{}, all numbers are float64.
func Unmarshal(data []byte, into any) error { return kubejson.Unmarshal(data, into) }

// Marshal encodes JSON by the rules of Kubernetes.
func Marshal(v any) ([]byte, error) { return kubejson.Marshal(v) }

// decoder decodes JSON as [Unmarshal] does, in less time, and only into zero values. It is safe for
// concurrent use. The zero decoder makes no plans of types.
type decoder struct{ plans *jsonplan.Decoder }

// newDecoder returns a decoder that makes a plan of each type.
func newDecoder() decoder { return decoder{jsonplan.NewDecoder()} }

// decode decodes data into the zero value that into points to. A plan decodes what is plain. The other
// values are left to kubejson.Decode. For example, the plan of a Deployment rejects {"spec":{"replicas":1.0}}, because
// replicas is an integer, and kubejson.Decode decides.
func (d decoder) decode(data []byte, into any) error {
	if d.plans != nil {
		if d.plans.Decode(data, into) {
			return nil
		}
		reflect.ValueOf(into).Elem().SetZero()
	}
	return kubejson.Decode(data, into)
}

// objectDecoder decodes the objects of one resource.
type objectDecoder struct {
	cluster        string
	resource       wire.Resource
	representation wire.Representation
	decoder        decoder
}

// send sends r by h, and decodes the answer into obj.
func (d objectDecoder) send(ctx context.Context, h wire.Handler, r *wire.Request, obj Object) error {
	response, err := h.Do(ctx, r)
	if err != nil {
		return err
	}
	err = d.decode(response.Body, obj)
	if e, ok := errors.AsType[*wire.DecodeError](err); ok && e.Ref.Name == "" {
		e.Ref.Namespace, e.Ref.Name = r.Namespace, r.Name // the answer does not name the object
	}
	return err
}

// errIncomplete is the error of an object from which a conversion between versions has left something out. A program
// must not act on such an object, because what it writes would be stored in place of what was left out.
var errIncomplete = errors.New("a conversion between versions has left something out of it (annotation " +
	ident.IncompleteAnnotation + "): mend the object in the version that the annotation names")

// decode decodes data into obj, a new object, and fills in the kind. Items of lists have no kind. An
// error is a [*wire.DecodeError].
func (d objectDecoder) decode(data []byte, obj Object) error {
	err := d.decodeContent(data, obj)
	if err == nil && isTyped(obj) && obj.GetAnnotations()[ident.IncompleteAnnotation] != "" {
		err = errIncomplete
	}
	if err != nil {
		return d.decodeError(data, err)
	}
	if d.representation == wire.MetadataOnly {
		// The server sends the kind PartialObjectMetadata. The kind of the object is more useful.
		obj.GetObjectKind().SetGroupVersionKind(d.resource.GroupVersionKind)
	} else if kind := obj.GetObjectKind(); kind.GroupVersionKind().Kind == "" {
		kind.SetGroupVersionKind(d.resource.GroupVersionKind)
	}
	return nil
}

// isTyped reports whether the Go type of obj is of one kind. An unstructured object and metadata stand for any kind.
func isTyped(obj Object) bool {
	switch obj.(type) {
	case interface{ SetUnstructuredContent(map[string]any) }, *metav1.PartialObjectMetadata:
		return false
	}
	return true
}

// decodeContent decodes data into obj as Unmarshal does. It does not call the JSON method of an
// unstructured object, which refuses objects without a kind, such as the items of most lists.
func (d objectDecoder) decodeContent(data []byte, obj Object) error {
	u, ok := obj.(interface{ SetUnstructuredContent(map[string]any) })
	if !ok {
		return d.decoder.decode(data, obj)
	}
	var content map[string]any
	if err := d.decoder.decode(data, &content); err != nil {
		return err
	}
	u.SetUnstructuredContent(content)
	return nil
}

// decodeError returns the error of an object that does not fit its type because of err.
func (d objectDecoder) decodeError(data []byte, err error) error {
	e := &wire.DecodeError{Ref: wire.Ref{Cluster: d.cluster, Resource: d.resource}, Err: err}
	var object ident.Answer
	if Unmarshal(data, &object) == nil {
		m := object.Metadata
		e.Ref.Namespace, e.Ref.Name, e.Ref.UID, e.ResourceVersion = m.Namespace, m.Name, m.UID, m.ResourceVersion
	}
	return e
}

// withKind returns the JSON of an object with the kind of r in place of its own.
func withKind(object []byte, r wire.Resource) ([]byte, error) {
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

// openObject returns the beginning of the JSON of an object of r: its apiVersion and its kind.
func openObject(r wire.Resource, size int) []byte {
	dst := make([]byte, 0, size+len(r.Group)+len(r.Version)+len(r.Kind)+32)
	dst = appendString(append(dst, `{"apiVersion":`...), r.GroupVersion().String())
	return appendString(append(dst, `,"kind":`...), r.Kind)
}

// jsonDecoder returns a decoder of what Marshal wrote.
func jsonDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
