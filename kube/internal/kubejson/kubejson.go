// Package kubejson decodes and encodes JSON by the rules of Kubernetes: the rules of encoding/json, but names must match
// in case. The fixtures of k8s.io/api are the test, in package kube.
package kubejson

import (
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options are the rules of Kubernetes.
var options = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	jsontext.EscapeForHTML(false),
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
