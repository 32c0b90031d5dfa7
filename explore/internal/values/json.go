package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// isEqual reports whether two values are the same in JSON. Numbers of different Go types can be equal.
func isEqual(a, b any) bool {
	x, errX := encode(a)
	y, errY := encode(b)
	return errors.Join(errX, errY) == nil && bytes.Equal(x, y)
}

// encode returns the JSON of a value. Equal values have equal JSON.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a value: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// decode returns the value of JSON in a schema. Integers stay integers.
func decode(data json.RawMessage) (any, error) {
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("decode %s in the schema: %w", data, err)
	}
	return v, nil
}
