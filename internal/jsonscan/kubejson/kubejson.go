// Package kubejson decodes and encodes JSON by the rules of Kubernetes. These are the rules of encoding/json, with two
// exceptions: names must match in case, and an integer in a value of the type any stays an integer. The decoder of
// Kubernetes (sigs.k8s.io/json) and the fixtures of k8s.io/api are the test, in package kube.
package kubejson

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options are the rules of Kubernetes.
var options = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	jsontext.EscapeForHTML(false),
	json.WithUnmarshalers(json.UnmarshalFromFunc(decodeNumber)),
)

// onePassOptions are options without the pass over the whole text that encoding/json makes before it decodes. If a text
// decodes without an error under one of the two sets of options, both sets give the same value.
var onePassOptions = json.JoinOptions(options, jsonv1.ReportErrorsWithLegacySemantics(false))

// OnePass returns options for a decoder that reads a text once. A text that such a decoder refuses must be decoded by
// [Unmarshal].
func OnePass() json.Options { return onePassOptions }

// Unmarshal decodes data into the value that into points to.
//
//go:noinline
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, options) }

// Marshal encodes v.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Decode decodes as [Unmarshal] does, in less time. into points to a zero value.
func Decode(data []byte, into any) error {
	if json.Unmarshal(data, into, onePassOptions) == nil {
		return nil
	}
	// The rules of encoding/json decide. They ignore mistakes in the tags of a struct, and they
	// leave what is not JSON alone.
	reflect.ValueOf(into).Elem().SetZero()
	return Unmarshal(data, into)
}

// Number returns the value that a number has in an any. The number is valid JSON. An integer that fits is an int64, and
// any other number is a float64:
//
//	9007199254740993     int64(9007199254740993)
//	9223372036854775808  float64(9223372036854775808)
//	1.0                  float64(1)
//
// An error is that of encoding/json for a number that no float64 can hold, such as 1e400.
func Number(text []byte) (any, error) {
	if !bytes.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return nil, &jsonv1.UnmarshalTypeError{Value: "number " + string(text), Type: reflect.TypeFor[float64]()}
	}
	return f, nil
}

// decodeNumber decodes a number into an any. It leaves all else to the decoder of all types: other values, and an any
// that points to a value.
func decodeNumber(d *jsontext.Decoder, into *any) error {
	if d.PeekKind() != '0' || *into != nil && reflect.TypeOf(*into).Kind() == reflect.Pointer {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	number, err := Number(text)
	if err == nil {
		*into = number
	}
	return err
}
