package jsonscan

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// decoded returns the members of an object as a decoder reads them. It reports false if data is
// not one well-formed object.
func decoded(data []byte) (names []string, values []string, ok bool) {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	if !jsontext.Value(data).IsValid(lenient...) {
		return nil, nil, false
	}
	d := jsontext.NewDecoder(bytes.NewReader(data), lenient...)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, nil, false
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, nil, false
		}
		names = append(names, token.String())
		value, err := d.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		values = append(values, string(value))
	}
	return names, values, true
}

func checkValidMembers(t *testing.T, data []byte) {
	t.Helper()
	var names, values []string
	ok := ValidMembers(data, func(name, value []byte) {
		names = append(names, strings.ToValidUTF8(string(name), "\ufffd"))
		values = append(values, string(value))
	})
	wantNames, wantValues, want := decoded(data)
	if ok != want {
		t.Fatalf("well-formed: %t, want %t: %.200q", ok, want, data)
	}
	if !ok {
		return
	}
	for i, name := range wantNames {
		if i >= len(names) || values[i] != wantValues[i] || names[i] != name && !strings.ContainsRune(name, '\ufffd') {
			t.Fatalf("read %q: %q, want %q: %q in %.200q", names, values, wantNames, wantValues, data)
		}
	}
	if len(names) != len(wantNames) {
		t.Fatalf("read %q, want %q", names, wantNames)
	}
}

var strictSeeds = []string{
	`{}`, ` { } `, `{"a":1}`, "\t{\n\"a\" :\r1 , \"b\": [ ] }\n", `{"a":[1,2.5,-0,0.1e+9,1E5,{"x":[[]]}],"a":null,"c":{"d":{"e":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}},"t":true,"f":false}`,
	`{"\u0061":"x","b\"":1,"\ud800":1}`, "{\"a\":\"\xff\"}", "{\"\xff\":1}", `{"a":"long enough for a word or two, and then \u12ag"}`,
	"{\"a\":\"a control character: \x01\"}", "{\"a\":\"a control character: \x1f and more\"}", "{\"a\":\"\x7f\u00a0\"}",
	`null`, `[1]`, `"x"`, `1`, ``, ` `, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a":1}}`, `{"a":1}{}`, `{"a":1} x`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`,
	`{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{"a":+1}`, `{"a":tru}`, `{"a":truex}`, `{"a":nul`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\`, `{"a":"x`,
	`{"a":[}`, `{"a":[1}`, `{"a":{]}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, "{\"a\":1}\x00", "{\"a\":\x001}", "\x00{}", "{\x00}", "{\"a\":1\v}",
}

func TestValidMembers(t *testing.T) {
	t.Parallel()
	for _, text := range strictSeeds {
		checkValidMembers(t, []byte(text))
	}
	for _, depth := range []int{63, 64, 65, 9_998, 9_999, 10_000, 10_001} {
		checkValidMembers(t, []byte(`{"a":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`))
		checkValidMembers(t, []byte(strings.Repeat(`{"a":`, depth)+`[1,{"b":2}]`+strings.Repeat("}", depth)))
	}
}

func FuzzValidMembers(f *testing.F) {
	for _, text := range strictSeeds {
		f.Add([]byte(text))
	}
	f.Fuzz(checkValidMembers)
}
