package yaml_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/yare-go/yare/internal/yaml"
)

// texts returns texts that need care in YAML.
func texts() []string {
	return []string{
		"", " ", "  ", "a", "a b", " a", "a ", "a  b", "\t", "a\tb", "a\x00b", "\x7f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\ufffd", "é€𝄞", "a\u0301",
		"y", "Y", "yes", "No", "on", "OFF", "true", "False", "null", "~", "<<", "=", "nil", "none",
		"0", "-1", "+1", "1_000", "0x1F", "0o17", "017", "0b11", "1.5", ".5", "5.", "1e3", "1E+3", "-.inf", "+.Inf", ".NAN", "12:30:45", "190:20:30",
		"1e", "e1", "10m", "128Mi", "5s", "v1", "1.2.3", "10.0.0.1", "::1", "2001-12-14", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "0x", "-", "+", ".",
		"..", "...", "---", "--- a", "... a", "---a", "- a", "-a", "- ", "? a", "?a", "?", ": a", ":a", ":", "a:", "a: b", "a:b", "a #b", "a#b", "#a", "a : b", "a :",
		"[a]", "{a}", "a, b", ",a", "&a", "*a", "!a", "!!str a", "|", "|-", ">", "'", "'a'", "it's", `"`, `"a"`, `a"b`, `\`, `\n`, "%a", "@a", "`a`", "{helm release}", "{{ a }}",
		"a\nb", "a\n", "a\n\n", "a\n\nb", "\n", "\na", "\n\n", " a\nb", "a\n b", "a\n  b\n", "a \nb", "a\n ", "a\n \nb", "a\r\nb", "a\rb", "a\n\tb", "a\n#b", "a\n- b", "a\n---\nb", "a\n...\n", "a: b\nc: d",
		strings.Repeat("word ", 60), "it's " + strings.Repeat("two  spaces # and: a colon, ", 9), strings.Repeat("x", 300), strings.Repeat("- a ", 50) + "b",
		strings.Repeat("long line ", 20) + "\n" + strings.Repeat("é ", 90) + "é", "'" + strings.Repeat(" '", 90), "# " + strings.Repeat("a ", 90),
	}
}

// objectOf returns an object that has s in each place that a text can have.
func objectOf(s string) map[string]any {
	return map[string]any{
		s: s, "name": s, "items": []any{s, s, []any{s, []any{s}}, map[string]any{"a": s, "b": []any{s}}},
		"object": map[string]any{"inner": map[string]any{s: map[string]any{"deep": s}, "last": s}},
	}
}

func TestMarshalKeepsTexts(t *testing.T) {
	t.Parallel()
	for _, s := range texts() {
		checkRoundTrip(t, objectOf(s))
	}
}

func FuzzMarshalKeepsTexts(f *testing.F) {
	for _, s := range texts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) < 200 {
			checkRoundTrip(t, objectOf(strings.ToValidUTF8(s, "?")))
		}
	})
}

// checkRoundTrip fails the test unless readers of YAML find object in what Marshal writes.
func checkRoundTrip(t *testing.T, object map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatalf("write %q: %v", object, err)
	}
	encoded, err := yaml.ToJSON(text)
	if err != nil {
		t.Fatalf("read back %q: %v\n%s", object, err, text)
	}
	var got map[string]any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, object) {
		t.Errorf("got %q, want %q, from\n%s", got, object, text)
	}
	var others map[string]any
	if err := sigsyaml.UnmarshalStrict(text, &others); err != nil || !reflect.DeepEqual(others, object) {
		t.Errorf("sigs.k8s.io/yaml reads %q and %v, want %q, from\n%s", others, err, object, text)
	}
}

// People know YAML in the form of kubectl. Here are the forms that manifests have.
func TestMarshalWritesLikeKubectl(t *testing.T) {
	t.Parallel()
	const text = `a: {}
apiVersion: v1
args:
- --leader-elect
- --listen=:8080
- - a
  - b: 1
    c: 1.5
description: A text that has more than eighty characters goes on in another line,
  with an indent, as people expect it.
empty: []
image: registry.example.com/webapp@sha256:0123
lines: |-
  first

  second: # no comment
    third
memory: 128Mi
none: null
path: .spec.replicas
quoted: 'a: b'
schema:
  nested:
    deeper:
      enum:
      - "True"
      - "5"
      - ""
    x-kubernetes-preserve-unknown-fields: true
`
	encoded, err := yaml.ToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(json.RawMessage(encoded))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	want, err := sigsyaml.JSONToYAML(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("sigs.k8s.io/yaml writes\n%s", want)
	}
}

func TestMarshalKeepsNumbers(t *testing.T) {
	t.Parallel()
	const text = "float: 1e-7\nint: 9223372036854775807\nuint: 18446744073709551615\n"
	got, err := yaml.Marshal(map[string]any{"int": int64(9223372036854775807), "uint": uint64(18446744073709551615), "float": 1e-7})
	if err != nil || string(got) != text {
		t.Errorf("got %q and %v, want %q", got, err, text)
	}
	encoded, err := yaml.ToJSON(got)
	if want := `{"float":1e-7,"int":9223372036854775807,"uint":18446744073709551615}`; err != nil || string(encoded) != want {
		t.Errorf("got %s and %v, want %s", encoded, err, want)
	}
}

func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"a string does not encode as an object": "a",
		"has a name of 1001 bytes":              map[string]any{strings.Repeat("a", 1001): 1},
		"chan int":                              map[string]any{"a": make(chan int)},
	} {
		if text, err := yaml.Marshal(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %q and the error %v, want an error with %q", text, err, want)
		}
	}
}

// ToJSON reads what sigs.k8s.io/yaml reads, and in the same way.
func TestToJSONReadsLikeKubectl(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "null", "a", "[1, 2]", "{a: {b: [c, {d: e}]}}", `{"apiVersion":"v1","kind":"Config"}`, "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}",
		"1: a\ntrue: b\n1.5: c\nno: d", "a: 2001-12-14\nb: !!str 5\nc: 0x10\nd: 1_000\ne: ~", "# comment\na: |\n  x\n  y\n",
		"null: a", "? [a]\n: b", "a: b: c", "a: .nan", "\tb", "a: *x",
	} {
		got, err := yaml.ToJSON([]byte(text))
		want, wantErr := sigsyaml.YAMLToJSON([]byte(text))
		if err == nil && string(got) != string(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%q: got %s and %v, want %s and %v", text, got, err, want, wantErr)
		}
	}
}
