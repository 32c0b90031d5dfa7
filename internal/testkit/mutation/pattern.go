package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
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
	case token.Pos, *ast.CommentGroup, *ast.Object: //nolint:staticcheck // the field Obj of ast.Ident has this type
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
