package noop

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The field set and the live object of the example of ownsExactly.
const (
	exampleOwned = `{"f:spec":{"f:replicas":{},"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}`
	exampleLive  = `{"spec":{"replicas":2,"containers":[{"name":"log","image":"log:1"},{"name":"web","image":"web:1"}]}}`
)

// ownsExactly against what servers write, and what they could.
func TestOwnsExactly(t *testing.T) {
	t.Parallel()
	const others = `{"f:shared":{".":{},"f:x":{}}}`
	for _, c := range []struct {
		name, owned, want, live string
		yes                     bool
	}{
		{"a value", `{"f:a":{}}`, `{"a":1}`, `{"a":1,"b":2}`, true},
		{"another value", `{"f:a":{}}`, `{"a":1}`, `{"a":2}`, false},
		{"a missing value", `{"f:a":{}}`, `{"a":1}`, `{}`, false},
		{"one not wanted any more", `{"f:a":{},"f:b":{}}`, `{"a":1}`, `{"a":1,"b":2}`, false},
		{"one not owned", `{"f:a":{}}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, false},
		{"an atomic list", `{"f:a":{}}`, `{"a":[1,2]}`, `{"a":[1,2]}`, true},
		{"an atomic list in another order", `{"f:a":{}}`, `{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{"an atomic map with a default in it", `{"f:a":{}}`, `{"a":{"x":1}}`, `{"a":{"x":1,"y":2}}`, false},
		{"an empty object that others have filled", `{"f:a":{".":{}}}`, `{"a":{}}`, `{"a":{"y":2}}`, true},
		{"an object that was empty, and that others have filled as we want it now", `{"f:shared":{}}`, `{"shared":{"x":1}}`, `{"shared":{"x":1}}`, false},
		{"an object that is to be empty and is", `{"f:shared":{}}`, `{"shared":{}}`, `{"shared":{}}`, true},
		{"a set", `{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}`, `{"a":["x","y"]}`, `{"a":["x","z","y"]}`, true},
		{"a set in another order", `{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}`, `{"a":["x","y"]}`, `{"a":["y","x"]}`, false},
		{"a set with one too few", `{"f:a":{"v:\"x\"":{}}}`, `{"a":["x","y"]}`, `{"a":["x","y"]}`, false},
		{"a keyed list", `{"f:a":{"k:{\"p\":80}":{".":{},"f:p":{},"f:n":{}}}}`, `{"a":[{"p":80,"n":"x"}]}`, `{"a":[{"p":81},{"p":80,"n":"x","d":1}]}`, true},
		{"a keyed list, a value in it", `{"f:a":{"k:{\"p\":80}":{".":{},"f:p":{},"f:n":{}}}}`, `{"a":[{"p":80,"n":"x"}]}`, `{"a":[{"p":80,"n":"y"}]}`, false},
		{"a defaulted key", `{"f:a":{"k:{\"p\":80,\"q\":\"TCP\"}":{".":{},"f:p":{}}}}`, `{"a":[{"p":80}]}`, `{"a":[{"p":80,"q":"TCP"},{"p":80,"q":"UDP"}]}`, true},
		{"two that a defaulted key could be", `{"f:a":{"k:{\"p\":80,\"q\":\"TCP\"}":{".":{},"f:p":{}}}}`, `{"a":[{"p":80},{"p":80,"q":"TCP"}]}`, `{"a":[{"p":80,"q":"TCP"}]}`, false},
		{"a defaulted key beside one that is set", `{"f:a":{"k:{\"p\":80,\"q\":\"TCP\"}":{".":{},"f:p":{}},"k:{\"p\":80,\"q\":\"UDP\"}":{".":{},"f:p":{},"f:q":{}}}}`, `{"a":[{"p":80},{"p":80,"q":"UDP"}]}`, `{"a":[{"p":80,"q":"TCP"},{"p":80,"q":"UDP"}]}`, true},
		{"an item that is not owned, beside one that could have two keys", `{"f:a":{"k:{\"p\":80,\"q\":\"TCP\"}":{".":{},"f:p":{}},"k:{\"p\":80,\"q\":\"UDP\"}":{".":{},"f:p":{}}}}`, `{"a":[{"p":80},{"p":81}]}`, `{"a":[{"p":80,"q":"TCP"},{"p":80,"q":"UDP"},{"p":81,"q":"TCP"}]}`, false},
		{"the same twice", `{"f:a":{"v:\"x\"":{}}}`, `{"a":["x","x"]}`, `{"a":["x"]}`, false},
		{"a notation of the future", `{"f:a":{"i:0":{}}}`, `{"a":[1]}`, `{"a":[1]}`, false},
		{"another kind of value", `{"f:a":{"f:b":{}}}`, `{"a":{"b":1}}`, `{"a":[1]}`, false},
		{"the example: another container is of another manager", exampleOwned, `{"spec":{"replicas":2,"containers":[{"name":"web","image":"web:1"}]}}`, exampleLive, true},
		{"the example: another value", exampleOwned, `{"spec":{"replicas":3,"containers":[{"name":"web","image":"web:1"}]}}`, exampleLive, false},
		{"the example: a field that is removed", exampleOwned, `{"spec":{"containers":[{"name":"web","image":"web:1"}]}}`, exampleLive, false},
		{"the example: an item that is added", exampleOwned, `{"spec":{"replicas":2,"containers":[{"name":"web","image":"web:1"},{"name":"log","image":"log:1"}]}}`, exampleLive, false},
	} {
		if got := ownsExactly(decoded(t, c.owned), []map[string]any{decoded(t, c.owned), decoded(t, others)}, decoded(t, c.want), decoded(t, c.live)); got != c.yes {
			t.Errorf("%s: %t, want %t", c.name, got, c.yes)
		}
	}
}

// decoded returns the JSON object as the check decodes it.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
