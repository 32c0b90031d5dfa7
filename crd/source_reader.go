package crd

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
)

// sourceFile holds the types of a Go file with their comments. Package go/parser would read more,
// and would add 0.3 MB to each operator.
type sourceFile struct {
	name  string
	pkg   string
	types []typeDeclaration
}

// declares reports whether the file declares a type called name.
func (f *sourceFile) declares(name string) bool {
	return slices.ContainsFunc(f.types, func(t typeDeclaration) bool { return t.name == name })
}

// typeDeclaration is a type that a file declares outside of functions.
type typeDeclaration struct {
	name string
	doc  string
	// spec is the name of the spec in kube.CustomResource[Spec, Status], or empty for other
	// types.
	spec string
	// fields are the fields of a struct, and of structs without a name within it.
	fields []fieldComment
	line   int
}

// fieldComment is the comment of a field, by the names that lead to it, as in Probe.Path.
type fieldComment struct {
	path, text string
	line       int
}

// sourceReader reads the tokens of a Go file. It assumes that the file compiles.
type sourceReader struct {
	scanner scanner.Scanner
	file    *token.File
	errors  scanner.ErrorList

	pos token.Pos
	tok token.Token
	lit string
	// leadComment is the comment that ends on the line before the current token. lineComment is the comment that
	// follows the previous token on the same line. Each is nil if there is none.
	leadComment, lineComment *ast.CommentGroup
}

// readSource returns the types that a Go file declares. If the file is not of the package want,
// it has no types.
func readSource(name string, text []byte, want string) (*sourceFile, error) {
	r := new(sourceReader)
	r.file = token.NewFileSet().AddFile(name, -1, len(text))
	r.scanner.Init(r.file, text, r.errors.Add, scanner.ScanComments)
	r.next()
	if r.tok != token.PACKAGE {
		return nil, fmt.Errorf("%s: the file does not begin with a package clause", r.file.Position(r.pos))
	}
	r.next()
	f := &sourceFile{name: name, pkg: r.lit}
	if f.pkg != want {
		return f, nil
	}
	for r.tok != token.EOF {
		switch r.tok {
		case token.TYPE:
			f.types = append(f.types, r.readTypes()...)
		case token.LPAREN, token.LBRACK, token.LBRACE:
			r.skipGroup()
		default:
			r.next()
		}
	}
	return f, r.errors.Err()
}

// next moves to the next token that is no comment.
func (r *sourceReader) next() {
	r.leadComment, r.lineComment = nil, nil
	before := r.lineOf(r.pos)
	r.scan()
	if r.tok != token.COMMENT {
		return
	}
	if r.lineOf(r.pos) == before {
		group, end := r.readComments(0)
		if r.lineOf(r.pos) != end || r.tok == token.SEMICOLON || r.tok == token.EOF {
			r.lineComment = group
		}
	}
	for r.tok == token.COMMENT {
		group, end := r.readComments(1)
		if r.lineOf(r.pos) == end+1 {
			r.leadComment = group
		}
	}
}

// scan reads one token. A file with an error ends at the error, because the next token may be incomplete.
func (r *sourceReader) scan() {
	if r.pos, r.tok, r.lit = r.scanner.Scan(); r.errors.Len() > 0 {
		r.tok, r.lit = token.EOF, ""
	}
}

func (r *sourceReader) lineOf(pos token.Pos) int {
	if !pos.IsValid() {
		return 0
	}
	return r.file.Line(pos)
}

// readComments reads comments with at most gap line breaks between each two of them. It returns
// them and the line on which they end.
func (r *sourceReader) readComments(gap int) (group *ast.CommentGroup, end int) {
	group, end = new(ast.CommentGroup), r.lineOf(r.pos)
	for r.tok == token.COMMENT && r.lineOf(r.pos) <= end+gap {
		end = r.lineOf(r.pos)
		for _, c := range []byte(r.lit) {
			if c == '\n' {
				end++
			}
		}
		group.List = append(group.List, &ast.Comment{Slash: r.pos, Text: r.lit})
		r.scan()
	}
	return group, end
}

// skipGroup skips a group in brackets of any kind.
func (r *sourceReader) skipGroup() {
	for depth := 0; r.tok != token.EOF; {
		switch r.tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		}
		r.next()
		if depth <= 0 {
			return
		}
	}
}

// skipTo skips to one of the tokens, outside of all brackets, or to the end of the file.
func (r *sourceReader) skipTo(tokens ...token.Token) {
	for r.tok != token.EOF && !slices.Contains(tokens, r.tok) {
		switch r.tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			r.skipGroup()
		default:
			r.next()
		}
	}
}

// readTypes reads one declaration and returns its types, which can be several in parentheses.
func (r *sourceReader) readTypes() []typeDeclaration {
	doc := r.leadComment
	r.next()
	if r.tok != token.LPAREN {
		return []typeDeclaration{r.readType(doc)}
	}
	r.next()
	var all []typeDeclaration
	for r.tok == token.IDENT {
		all = append(all, r.readType(r.leadComment))
		r.skipTo(token.SEMICOLON, token.RPAREN)
		if r.tok == token.SEMICOLON {
			r.next()
		}
	}
	return all
}

// readType reads the name of a type and the type.
func (r *sourceReader) readType(doc *ast.CommentGroup) typeDeclaration {
	t := typeDeclaration{name: r.lit, doc: doc.Text(), line: r.lineOf(r.pos)}
	r.next()
	if r.tok == token.LBRACK {
		r.skipGroup() // type parameters, or the length of an array
	}
	if r.tok == token.ASSIGN {
		r.next()
	}
	if r.tok == token.IDENT {
		t.spec = r.readSpecName()
		return t
	}
	t.fields = r.readStructIn("")
	return t
}

// readSpecName reads a type that begins with a name, up to its arguments. It returns the
// name of the first of the two arguments of CustomResource.
func (r *sourceReader) readSpecName() string {
	if r.readEmbeddedName() != "CustomResource" || r.tok != token.LBRACK {
		return ""
	}
	r.next()
	spec := r.readEmbeddedName()
	arguments := 1
	for {
		r.skipTo(token.COMMA, token.RBRACK)
		if r.tok != token.COMMA {
			break
		}
		if r.next(); r.tok != token.RBRACK {
			arguments++
		}
	}
	if arguments != 2 {
		return ""
	}
	return spec
}

// readEmbeddedName reads a type's name with its package, and returns the name of a field that embeds
// the type.
func (r *sourceReader) readEmbeddedName() string {
	for r.tok == token.MUL {
		r.next()
	}
	name := "_"
	for r.tok == token.IDENT {
		name = r.lit
		if r.next(); r.tok != token.PERIOD {
			break
		}
		r.next()
	}
	return name
}

// readStructIn reads a type, and returns the fields of the struct in it: behind pointers, and as the
// elements of arrays and maps. The path to the struct is empty or ends with a period.
func (r *sourceReader) readStructIn(path string) []fieldComment {
	for {
		switch r.tok {
		case token.MUL:
			r.next()
		case token.LBRACK:
			r.skipGroup()
		case token.MAP:
			if r.next(); r.tok == token.LBRACK {
				r.skipGroup()
			}
		case token.STRUCT:
			if r.next(); r.tok == token.LBRACE {
				return r.readStruct(path)
			}
			return nil
		default:
			return nil
		}
	}
}

// readStruct reads the fields of a struct from its opening brace to its closing brace.
func (r *sourceReader) readStruct(path string) []fieldComment {
	var all []fieldComment
	r.next()
	for r.tok != token.RBRACE && r.tok != token.EOF {
		doc, line := r.leadComment, r.lineOf(r.pos)
		names, nested := r.readField(path)
		r.skipTo(token.SEMICOLON, token.RBRACE)
		// The semicolon of a line's end follows the comment on the line. A written semicolon
		// precedes the comment.
		comment := r.lineComment
		if r.tok == token.SEMICOLON {
			written := r.lit == ";"
			r.next()
			if written {
				comment = r.lineComment
			}
		} else {
			comment = nil
		}
		text := descriptionOf(doc.Text())
		if text == "" {
			text = descriptionOf(comment.Text())
		}
		for i, name := range names {
			all = append(all, fieldComment{path + name, text, line})
			for _, f := range nested {
				if i > 0 { // nested has the path of the first name
					f.path = path + name + f.path[len(path+names[0]):]
				}
				all = append(all, f)
			}
		}
	}
	if r.tok == token.RBRACE {
		r.next()
	}
	return all
}

// readField reads the names of a field, and its type as far as it has fields.
func (r *sourceReader) readField(path string) (names []string, nested []fieldComment) {
	if r.tok != token.IDENT {
		return []string{r.readEmbeddedName()}, nil
	}
	names = []string{r.lit}
	r.next()
	switch r.tok {
	case token.PERIOD:
		r.next()
		return []string{r.readEmbeddedName()}, nil
	case token.SEMICOLON, token.STRING, token.RBRACE:
		return names, nil
	}
	for r.tok == token.COMMA {
		r.next()
		names = append(names, r.lit)
		r.next()
	}
	// The type after brackets is the element of an array. If nothing follows, names holds the name
	// of an embedded type with arguments.
	return names, r.readStructIn(path + names[0] + ".")
}
