package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzMembers compares the members of an object with what a decoder finds, and sees that
// nothing panics on what is no JSON.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, ` { "a" : 1 , "b\u0062" : [ {"x":"\"}"} , null ] , "c":{"d":{}} } `, `{"a":"\\","a":-1.5e3,"":true}`, `[1]`, `{"a"`, `{"a":}`, `{"a":1,}`, `{,}`, `"`, ``, "{\"a\x8d\":1}", `{"a\ud800":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := make(map[string]string)
		s := New(data)
		err := s.Members(func(name []byte) error {
			raw, err := s.Raw()
			got[string(name)] = string(raw)
			return err
		})
		again := New(data)
		found, findErr := again.Find("a")
		var want map[string]json.RawMessage
		if !json.Valid(data) || json.Unmarshal(data, &want) != nil {
			return
		}
		if err != nil || findErr != nil {
			t.Fatalf("%v, %v in %s", err, findErr, data)
		}
		if len(got) != len(want) {
			t.Errorf("%d members, want %d in %s", len(got), len(want), data)
		}
		for name, value := range want {
			if got[name] != string(bytes.TrimSpace(value)) {
				t.Errorf("%q is %s, want %s in %s", name, got[name], value, data)
			}
		}
		if _, there := want["a"]; there != found {
			t.Errorf("find: %t, want %t in %s", found, there, data)
		}
	})
}

// One member of the wrong type is the error, and the others are read.
func TestMembersGoOn(t *testing.T) {
	t.Parallel()
	s := New([]byte(`{"a":7,"b":"x","c":"y","d":{"e":[]}}`))
	texts := ""
	err := s.Members(func(name []byte) error {
		if string(name) == "d" {
			return s.Members(func([]byte) error { _, err := s.Number(); return err })
		}
		text, err := s.TextOrNull()
		texts += string(text)
		return err
	})
	if err == nil || err.Error() != `a: there is "7" in place of a string` || texts != "xy" {
		t.Errorf("%v, read %q", err, texts)
	}
	s = New([]byte(`{"a":7,"b"`))
	if err := s.Members(func([]byte) error { _, err := s.Boolean(); return err }); !errors.Is(err, ErrNotJSON) {
		t.Errorf("cut off: %v", err)
	}
}
