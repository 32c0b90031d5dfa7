package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Merge returns a copy of an object with a merge patch applied (RFC 7386). The copy shares with the
// object what the patch leaves alone.
func Merge(object map[string]any, patch json.RawMessage) (map[string]any, error) {
	if len(patch) == 0 {
		return object, nil
	}
	var changes map[string]any
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, fmt.Errorf("decode the merge patch %s: %w", patch, err)
	}
	return merged(object, changes), nil
}

func merged(object, changes map[string]any) map[string]any {
	result := maps.Clone(object)
	if result == nil {
		result = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(result, name)
			continue
		}
		if members, ok := change.(map[string]any); ok {
			old, _ := result[name].(map[string]any)
			change = merged(old, members)
		}
		result[name] = change
	}
	return result
}

// mergePatch returns the merge patch that makes one object of the other.
func mergePatch(from, to map[string]any) (json.RawMessage, error) {
	return encode(difference(from, to))
}

// difference returns the merge patch that makes one object of the other, not yet encoded.
func difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, ok := to[name]; !ok {
			patch[name] = nil
		}
	}
	for name, wanted := range to {
		got, ok := from[name]
		if ok && isEqual(got, wanted) {
			continue
		}
		before, isObject := got.(map[string]any)
		after, staysObject := wanted.(map[string]any)
		if isObject && staysObject {
			patch[name] = difference(before, after)
		} else {
			patch[name] = wanted
		}
	}
	return patch
}

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
