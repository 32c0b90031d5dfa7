package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMutationsFitTheCode says which mutations a rename of a function, method or constant broke.
func TestMutationsFitTheCode(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../../..")
	for _, m := range allMutations() {
		if _, err := m.apply(module); err != nil {
			t.Error(err)
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	const code = `package a

const limit = 4

func (s *store) put(key string) error {
	if s.closed {
		return nil
	}
	switch err := s.check(key); {
	case err != nil: // it has a comment
		return err
	case s.full || limit < s.size && key != "":
		s.drop(first, key)
		s.drop(second, key)
	}
	return fmt.Errorf("%w: %s %s", errLate, key, s.name)
}
`
	for _, c := range []struct{ function, pattern, replacement, before, after string }{
		// Expressions. A wildcard with a small letter stands for an identifier, with a capital for any expression.
		{"limit", `4`, `1 << 30`, `limit = 4`, `limit = 1 << 30`},
		{"store.put", `_s._full || _X`, `_X`, `s.full || limit < s.size && key != ""`, `limit < s.size && key != ""`},
		{"store.put", `_X && _key != ""`, `_X || true`, `limit < s.size && key != ""`, `(limit < s.size) || true`},
		{"store.put", `errLate, _key`, `errLate, "b"`, `errLate, key`, `errLate, "b"`},
		{"store.put", `_s.drop(second, _Key)`, ``, `s.drop(second, key)`, ``},
		// Statements.
		{"store.put", `_s.drop(first, _k); _s.drop(second, _k)`, `_s.drop(_k)`, "s.drop(first, key)\n\t\ts.drop(second, key)", `s.drop(key)`},
		// The beginnings of if statements and of case clauses.
		{"store.put", `if _Closed {`, `if true || _Closed {`, `if s.closed {`, `if true || s.closed {`},
		{"store.put", `case _err != nil:`, `case false:`, `case err != nil:`, `case false:`},
		{"store.put", `case _err != nil: return _err`, `case false:`, "case err != nil: // it has a comment\n\t\treturn err", `case false:`},
	} {
		got, err := mutation{folder: "a", function: c.function, pattern: c.pattern, replacement: c.replacement}.apply(fstest.MapFS{
			"a/a.go":      {Data: []byte(code)},
			"a/b.go":      {Data: []byte("package a\n\nfunc put() {}\n")},
			"a/a_test.go": {Data: []byte(code)},
		})
		if err != nil {
			t.Error(err)
		} else if want := strings.Replace(code, c.before, c.after, 1); string(got.code) != want || got.name != "a/a.go" {
			t.Errorf("`%s` in place of `%s`:\n%s", c.replacement, c.pattern, got.code)
		}
	}

	for _, c := range []struct{ function, pattern, replacement, want string }{
		{"shop.put", `4`, ``, `package a declares no shop.put; it declares ["store.put"]`},
		{"store.put", `_s.drop(_A, _key)`, ``, `2 places of store.put fit the pattern`},
		{"store.put", `_s.drop(_a, _a)`, ``, `0 places of store.put fit the pattern`},
		{"store.put", `_s.drop(first, _key)`, `_t`, `the pattern has no wildcard _t`},
		{"store.put", `_s.drop(first, _key)`, `)`, `the changed code: a/a.go:`},
		{"store.put", `(`, ``, "parse the pattern `(`"},
	} {
		_, err := mutation{folder: "a", function: c.function, pattern: c.pattern, replacement: c.replacement}.apply(fstest.MapFS{"a/a.go": {Data: []byte(code)}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("`%s` in place of `%s` in %s: the error is %v", c.replacement, c.pattern, c.function, err)
		}
	}
}

func TestRenamesKeepTheResult(t *testing.T) {
	t.Parallel()
	m := mutation{1, 1, "a", "store.put", `_s.drop(_key) && _X`, `_X`}
	if renamed := (mutation{1, 1, "b", "shop.putLocked", `_s.discard(_k) && _Rest`, `_Rest`}); renamed.hash() != m.hash() {
		t.Error("the hash changed with the names")
	}
	if other := (mutation{1, 1, "a", "store.put", `_s.drop(_key) || _X`, `_X`}); other.hash() == m.hash() {
		t.Error("the hash did not change with the operator")
	}
}
