package crd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// literal returns text from a tag as a value of s, in JSON.
func literal(s *Schema, text string) (json.RawMessage, error) {
	if text == "null" && s.Nullable {
		return json.RawMessage(text), nil
	}
	switch s.typeName() {
	case typeString:
		return quote(text)
	case typeIntOrString:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.RawMessage(strconv.FormatInt(n, 10)), nil
		}
		return quote(text)
	case typeInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q must be a whole number that int64 holds", text)
		}
		return json.RawMessage(strconv.FormatInt(n, 10)), nil
	case typeNumber:
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("%q must be a number", text)
		}
		return json.RawMessage(text), nil
	case typeBoolean:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q must be true or false", text)
		}
		return json.RawMessage(text), nil
	default:
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(text)); err != nil {
			return nil, fmt.Errorf("%q must be JSON, in quotes if it has a comma: %w", text, err)
		}
		return compact.Bytes(), nil
	}
}

// quote returns text as a JSON string.
func quote(text string) (json.RawMessage, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the value is not valid UTF-8")
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return bytes.TrimSpace(b.Bytes()), err
}

// decode returns the value of text, which must be JSON. Numbers stay as they are written.
func decode(text json.RawMessage) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil
	}
	return value
}
