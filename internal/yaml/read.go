package yaml

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v2"
)

// ToJSON returns a YAML document as JSON. Names that are numbers or booleans become texts.
func ToJSON(document []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	value, err := withNames(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value, json.Deterministic(true))
}

// withNames returns value with texts as the keys of its maps.
func withNames(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case map[any]any:
		named := make(map[string]any, len(value))
		for key, v := range value {
			switch key.(type) {
			case string, bool, int, int64, uint64, float64:
			default:
				return nil, fmt.Errorf("the name %v is no text", key)
			}
			if named[fmt.Sprint(key)], err = withNames(v); err != nil {
				return nil, err
			}
		}
		return named, nil
	case []any:
		for i := range value {
			if value[i], err = withNames(value[i]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
