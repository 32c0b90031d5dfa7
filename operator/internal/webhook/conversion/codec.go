package conversion

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/yare-go/yare/internal/jsonscan/kubejson"
	"github.com/yare-go/yare/kube"
)

// codec decodes and encodes the objects of a Go type.
type codec struct {
	// newObject returns a pointer to a new object.
	newObject func() any
}

// decode returns an object with the content of a text. It decodes as [kube.Unmarshal] does, in less time.
func (c codec) decode(text []byte) (any, error) {
	object := c.newObject()
	return object, kubejson.Decode(text, object)
}

// encode returns the JSON of an object.
func (codec) encode(object any) ([]byte, error) { return kube.Marshal(object) }

// encodeWithoutZeros returns the JSON of an object without all zero fields.
func (codec) encodeWithoutZeros(object any) ([]byte, error) {
	return json.Marshal(object, jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), json.OmitZeroStructFields(true))
}
