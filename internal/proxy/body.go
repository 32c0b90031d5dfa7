package proxy

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// parseBody returns the value of the body of a write. The value is nil if there is no body, or if the body is neither
// JSON, nor YAML, nor protobuf.
func parseBody(contentType string, body []byte) (value any) {
	media, _, _ := mime.ParseMediaType(contentType)
	convert := func(body []byte) ([]byte, error) { return body, nil }
	switch {
	case strings.HasSuffix(media, "yaml"):
		convert = yaml.YAMLToJSON
	case media == contentProtobuf:
		convert = convertProtobuf
	}
	if converted, err := convert(body); err == nil {
		body = converted
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil
	}
	return value
}

// objectName returns the name in the metadata of an object, if there is one.
func objectName(value any) string {
	object, _ := value.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// contentProtobuf is the media type of the writes that client-go sends for built-in kinds.
const contentProtobuf = "application/vnd.kubernetes.protobuf"

// convertProtobuf returns an object in the protobuf of Kubernetes as JSON. Error: the kind is not built-in,
// or is newer than client-go.
func convertProtobuf(body []byte) ([]byte, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
