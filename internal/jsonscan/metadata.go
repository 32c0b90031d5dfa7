package jsonscan

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// WithMetadata returns an object, which is JSON, with another member in its metadata. The value is a text. The object
// must have metadata that lack the member. For example, WithMetadata(`{"metadata":{"name":"a"}}`, "uid", "7") returns
// `{"metadata":{"uid":"7","name":"a"}}`.
func WithMetadata(object []byte, member, value string) ([]byte, error) {
	s := New(object)
	result := append(make([]byte, 0, len(object)+len(member)+len(value)+len(`"":"",`)), '{')
	err := s.Members(func(name []byte) error {
		raw, err := s.Raw()
		if err != nil {
			return err
		}
		if len(result) > 1 {
			result = append(result, ',')
		}
		if result, err = jsontext.AppendQuote(result, name); err != nil {
			return err
		}
		result = append(result, ':')
		if string(name) == "metadata" && len(raw) > 0 && raw[0] == '{' {
			result = append(result, '{')
			if result, err = jsontext.AppendQuote(result, member); err != nil {
				return err
			}
			if result, err = jsontext.AppendQuote(append(result, ':'), value); err != nil {
				return err
			}
			raw = raw[1:]
			if next := bytes.TrimLeft(raw, " \t\r\n"); next[0] != '}' {
				result = append(result, ',')
			}
		}
		result = append(result, raw...)
		return nil
	})
	return append(result, '}'), err
}
