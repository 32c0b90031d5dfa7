package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// wildcards are the wildcards of a pattern or replacement.
var wildcards = regexp.MustCompile(`\b_[A-Za-z]\w*`)

// pattern is a parsed pattern.
type pattern struct {
	// nodes are expressions, statements or one clause that follow each other in the code.
	nodes []ast.Node
	// isHeader reports whether the pattern ends before the body of an if statement or of a case clause.
	isHeader bool
}

// parsePattern parses a list of expressions, a list of statements, `case X:` or `if X {`.
func parsePattern(text string) (pattern, error) {
	if strings.HasPrefix(text, "case ") {
		body, err := parseBody("switch {\n" + text + "\n}")
		if err != nil {
			return pattern{}, err
		}
		clause := body.List[0].(*ast.SwitchStmt).Body.List[0].(*ast.CaseClause)
		return pattern{nodes: []ast.Node{clause}, isHeader: len(clause.Body) == 0}, nil
	}
	isHeader := strings.HasSuffix(text, "{")
	if isHeader {
		text += "}"
	} else if list, err := parser.ParseExpr("[]any{" + text + "}"); err == nil {
		return pattern{nodes: nodesOf(list.(*ast.CompositeLit).Elts)}, nil
	}
	body, err := parseBody(text)
	if err != nil {
		return pattern{}, err
	}
	return pattern{nodes: nodesOf(body.List), isHeader: isHeader}, nil
}

// parseBody parses the body of a function.
func parseBody(text string) (*ast.BlockStmt, error) {
	f, err := parser.ParseExpr("func() {\n" + text + "\n}")
	if err != nil {
		return nil, fmt.Errorf("parse the pattern `%s`: %w", text, err)
	}
	return f.(*ast.FuncLit).Body, nil
}

func nodesOf[N ast.Node](list []N) []ast.Node {
	nodes := make([]ast.Node, len(list))
	for i, n := range list {
		nodes[i] = n
	}
	return nodes
}

// fit is a place of the code that fits a pattern.
type fit struct {
	start, end token.Pos
	// bindings are the parts of the code that the wildcards stand for.
	bindings map[string]ast.Node
}

// find returns the places below root that fit the pattern. The function source returns the code of a node.
func (p pattern) find(root ast.Node, source func(start, end token.Pos) string) []fit {
	var fits []fit
	try := func(code []ast.Node) {
		m := matcher{source: source, isHeader: p.isHeader, bindings: make(map[string]ast.Node)}
		for i := range code {
			if !m.matches(reflect.ValueOf(p.nodes[i]), reflect.ValueOf(code[i])) {
				return
			}
		}
		last := code[len(code)-1]
		end := last.End()
		if p.isHeader {
			end = headerEnd(last)
		}
		fits = append(fits, fit{start: code[0].Pos(), end: end, bindings: m.bindings})
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch {
		case n == nil:
		case len(p.nodes) == 1:
			try([]ast.Node{n})
		default:
			for _, list := range listsOf(n) {
				for i := range len(list) - len(p.nodes) + 1 {
					try(list[i : i+len(p.nodes)])
				}
			}
		}
		return true
	})
	return fits
}

// listsOf returns the lists of expressions and of statements that a node consists of.
func listsOf(n ast.Node) [][]ast.Node {
	var lists [][]ast.Node
	for _, field := range reflect.ValueOf(n).Elem().Fields() {
		switch list := field.Interface().(type) {
		case []ast.Expr:
			lists = append(lists, nodesOf(list))
		case []ast.Stmt:
			lists = append(lists, nodesOf(list))
		}
	}
	return lists
}

// headerEnd returns the end of the code before the body of an if statement or case clause.
func headerEnd(n ast.Node) token.Pos {
	if clause, ok := n.(*ast.CaseClause); ok {
		return clause.Colon + 1
	}
	return n.(*ast.IfStmt).Body.Lbrace + 1
}

// matcher compares code with a pattern.
type matcher struct {
	source   func(start, end token.Pos) string
	isHeader bool
	bindings map[string]ast.Node
}

// matches reports whether code fits the pattern, and binds the wildcards. Positions and comments do not count.
func (m matcher) matches(pattern, code reflect.Value) bool {
	if pattern.Kind() == reflect.Interface {
		pattern, code = pattern.Elem(), code.Elem()
	}
	if !pattern.IsValid() || !code.IsValid() {
		return pattern.IsValid() == code.IsValid()
	}
	if ident, ok := pattern.Interface().(*ast.Ident); ok && ident != nil && wildcards.MatchString(ident.Name) {
		return m.bind(ident.Name, code)
	}
	if pattern.Type() != code.Type() {
		return false
	}
	switch pattern.Interface().(type) {
	case token.Pos, *ast.CommentGroup, *ast.Object:
		return true
	case *ast.BlockStmt, []ast.Stmt:
		if m.isHeader {
			return true
		}
	}
	switch pattern.Kind() {
	case reflect.Pointer:
		return m.matches(pattern.Elem(), code.Elem())
	case reflect.Slice:
		for i := range min(pattern.Len(), code.Len()) {
			if !m.matches(pattern.Index(i), code.Index(i)) {
				return false
			}
		}
		return pattern.Len() == code.Len()
	case reflect.Struct:
		for i := range pattern.NumField() {
			if !m.matches(pattern.Field(i), code.Field(i)) {
				return false
			}
		}
		return true
	default:
		return pattern.Equal(code)
	}
}

// bind reports whether a wildcard can stand for code, and records the code if so.
func (m matcher) bind(wildcard string, code reflect.Value) bool {
	expression, ok := code.Interface().(ast.Expr)
	if !ok || code.IsNil() {
		return false
	}
	if _, isIdent := expression.(*ast.Ident); !isIdent && !unicode.IsUpper(rune(wildcard[1])) {
		return false
	}
	if bound, ok := m.bindings[wildcard]; ok {
		return m.source(bound.Pos(), bound.End()) == m.source(expression.Pos(), expression.End())
	}
	m.bindings[wildcard] = expression
	return true
}

// replace returns a replacement with the code that the wildcards stand for.
func (f fit) replace(replacement string, source func(start, end token.Pos) string) (string, error) {
	var unbound error
	text := wildcards.ReplaceAllStringFunc(replacement, func(wildcard string) string {
		node, ok := f.bindings[wildcard]
		if !ok {
			unbound = fmt.Errorf("the pattern has no wildcard %s", wildcard)
			return wildcard
		}
		code := source(node.Pos(), node.End())
		if _, isBinary := node.(*ast.BinaryExpr); isBinary && wildcard != replacement {
			return "(" + code + ")"
		}
		return code
	})
	return text, unbound
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
