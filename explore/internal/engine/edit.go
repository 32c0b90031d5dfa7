package engine

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/yare-go/yare/explore/internal/history"
)

// editOf returns a merge patch of one field of an object that its program has written, or nil if no field can be
// changed without knowing its meaning. Numbers and booleans come before strings: the server refuses many strings.
func editOf(resource string, object map[string]any) json.RawMessage {
	metadata, _ := object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	var best []string
	var bestValue any
	bestRank := 0
	for _, each := range entries {
		entry, _ := each.(map[string]any)
		manager, _ := entry["manager"].(string)
		fields, _ := entry["fieldsV1"].(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if subresource != "" || strings.HasPrefix(manager, "explorer-") || history.IsControlPlane(manager) {
			continue
		}
		walk(fields, object, nil, func(path []string, value any) {
			other, rank := otherValue(resource, path, value)
			if rank > bestRank {
				best, bestValue, bestRank = slices.Clone(path), other, rank
			}
		})
	}
	if best == nil {
		return nil
	}
	patch := bestValue
	for _, name := range slices.Backward(best) {
		patch = map[string]any{name: patch}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil
	}
	return data
}

// walk calls yield for the leaves of fields that are not items of lists, in the order of their names.
func walk(fields map[string]any, value any, path []string, yield func(path []string, value any)) {
	object, ok := value.(map[string]any)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, isField := strings.CutPrefix(key, "f:")
		inner, _ := fields[key].(map[string]any)
		if !isField || object[name] == nil {
			continue
		}
		if len(inner) == 0 {
			yield(append(path, name), object[name])
		} else {
			walk(inner, object[name], append(path, name), yield)
		}
	}
}

// otherValue returns another value for a field of an object, and the rank of the value. The server is more likely
// to accept a value of a higher rank. The rank is 0 if there is no other value.
func otherValue(resource string, path []string, value any) (other any, rank int) {
	switch {
	case path[0] == "metadata" && len(path) > 1 && path[1] == "labels":
		if text, ok := value.(string); ok {
			return text + "x", 1
		}
	case path[0] == "metadata" || path[0] == "status":
	case path[0] == "data" && resource == "secrets":
		text, _ := value.(string)
		if content, err := base64.StdEncoding.DecodeString(text); err == nil {
			return base64.StdEncoding.EncodeToString(append(content, 'x')), 4
		}
	case path[0] == "data":
		if text, ok := value.(string); ok {
			return text + "x", 4
		}
	default:
		switch value := value.(type) {
		case bool:
			return !value, 2
		case float64:
			return value + 1, 3
		case int64:
			return value + 1, 3
		}
	}
	return nil, 0
}
