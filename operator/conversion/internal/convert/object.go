package convert

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// object is an object that is being converted.
type object struct {
	kind    schema.GroupVersionKind
	content map[string]any
	// metadata holds the members of the metadata.
	metadata map[string]jsontree.Raw
	// annotations holds all annotations, also those of conversions as they were read.
	annotations map[string]string
	// hasNewAnnotations is true if annotations differ from those in metadata.
	hasNewAnnotations bool
	// records holds the records of the versions of the kind.
	records map[string]*record
	// isPart is true for an object without a uid. Nobody stores it: an API server converts such parts of objects for an
	// apply.
	isPart bool

	// baseView is the JSON of the metadata that functions see. It is made when it is needed.
	baseView []byte
}

var errNoObject = errors.New("it is no JSON object with an apiVersion and a kind")

// parseObject returns the object of Kubernetes in text.
func parseObject(text []byte) (*object, error) {
	o := &object{
		content: make(map[string]any), metadata: make(map[string]jsontree.Raw), records: make(map[string]*record),
		isPart: true,
	}
	var apiVersion, kind string
	if !jsonscan.ValidMembers(text, func(name, value []byte) {
		switch string(name) {
		case "apiVersion":
			apiVersion, _ = jsontree.Parse(value).(string)
		case "kind":
			kind, _ = jsontree.Parse(value).(string)
		case "metadata":
			o.readMetadata(value)
		default:
			o.content[string(name)] = jsontree.Parse(value)
		}
	}) || apiVersion == "" || kind == "" {
		return nil, errNoObject
	}
	o.kind = schema.FromAPIVersionAndKind(apiVersion, kind)
	return o, nil
}

// readMetadata reads the metadata, which is well formed.
func (o *object) readMetadata(text []byte) {
	s := jsonscan.New(text)
	_ = s.Members(func(name []byte) error {
		key := string(name)
		value, err := s.Raw()
		o.metadata[key] = jsontree.Raw(value)
		switch key {
		case "uid":
			uid, _ := jsontree.Parse(value).(string)
			o.isPart = uid == ""
		case "annotations":
			o.annotations = make(map[string]string)
			annotations, _ := jsontree.Parse(value).(map[string]any)
			for key, each := range annotations {
				if text, isText := each.(string); isText {
					o.annotations[key] = text
				}
			}
		}
		return err
	})
}

// view returns the JSON of an object of r with this content, as functions see it: without the annotations of
// conversions and without managedFields.
func (o *object) view(r wire.Resource, content map[string]any) []byte {
	if o.baseView == nil {
		metadata := make(map[string]any, len(o.metadata))
		for name, value := range o.metadata {
			if name != "managedFields" {
				metadata[name] = value
			}
		}
		if o.annotations != nil {
			annotations := make(map[string]any, len(o.annotations))
			for key, value := range o.annotations {
				if !IsOwnAnnotation(key) {
					annotations[key] = value
				}
			}
			delete(metadata, "annotations")
			if len(annotations) > 0 {
				metadata["annotations"] = annotations
			}
		}
		o.baseView = jsontree.Append(nil, metadata)
	}
	return encodeObject(r.GroupVersionKind, jsontree.Raw(o.baseView), content)
}

// viewWithoutMetadata returns the JSON of an object of r that has only its content.
func (*object) viewWithoutMetadata(r wire.Resource, content map[string]any) []byte {
	return encodeObject(r.GroupVersionKind, nil, content)
}

// encodeObject returns the JSON of an object.
func encodeObject(kind schema.GroupVersionKind, metadata any, content map[string]any) []byte {
	names := append(jsontree.SortedNames(content), "apiVersion", "kind")
	if metadata != nil {
		names = append(names, "metadata")
	}
	slices.Sort(names)
	text := append(make([]byte, 0, 4<<10), '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(jsontree.AppendText(text, name), ':')
		switch name {
		case "apiVersion":
			text = jsontree.AppendText(text, kind.GroupVersion().String())
		case "kind":
			text = jsontree.AppendText(text, kind.Kind)
		case "metadata":
			text = jsontree.Append(text, metadata)
		default:
			text = jsontree.Append(text, content[name])
		}
	}
	return append(text, '}')
}

// metadataText returns a member of the metadata that is a text, such as the name. It returns an empty text for another
// one.
func (o *object) metadataText(name string) string {
	text, _ := jsontree.Parse([]byte(o.metadata[name])).(string)
	return text
}

// record returns the record of a version.
func (o *object) record(version string) *record {
	r := o.records[version]
	if r == nil {
		r = parseRecord(version, o.annotations)
		o.records[version] = r
	}
	return r
}

// isMarked reports whether the object has the mark of an incomplete object.
func (o *object) isMarked() bool {
	_, isMarked := o.annotations[Incomplete]
	return isMarked
}

// hasKept reports whether the object has an annotation that keeps a value.
func (o *object) hasKept() bool {
	for key := range o.annotations {
		if strings.HasPrefix(key, Prefix) && key != Incomplete {
			return true
		}
	}
	return false
}

// setAnnotation sets an annotation, or removes the annotation if value is empty.
func (o *object) setAnnotation(key, value string) {
	if old, isThere := o.annotations[key]; old == value && isThere == (value != "") {
		return
	}
	if o.annotations == nil {
		o.annotations = make(map[string]string)
	}
	if value == "" {
		delete(o.annotations, key)
	} else {
		o.annotations[key] = value
	}
	o.hasNewAnnotations = true
}

// annotationSizes returns the number of bytes of the annotations of conversions, and of all annotations, as API servers
// count them.
func (o *object) annotationSizes() (own, all int) {
	for key, value := range o.annotations {
		all += len(key) + len(value)
		if IsOwnAnnotation(key) {
			own += len(key) + len(value)
		}
	}
	return own, all
}

// encode returns the JSON of the object. An API server refuses the result of a conversion without metadata.
func (o *object) encode() []byte {
	metadata := make(map[string]any, len(o.metadata))
	for name, value := range o.metadata {
		metadata[name] = value
	}
	if o.hasNewAnnotations {
		delete(metadata, "annotations")
		if len(o.annotations) > 0 {
			annotations := make(map[string]any, len(o.annotations))
			for key, each := range o.annotations {
				annotations[key] = each
			}
			metadata["annotations"] = annotations
		}
	}
	return encodeObject(o.kind, metadata, o.content)
}
