package faults

import (
	"encoding/json"

	"k8s.io/client-go/kubernetes/scheme"
)

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
