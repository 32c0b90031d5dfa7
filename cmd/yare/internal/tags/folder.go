package tags

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// folder is what the files of a package say about the types of all of them.
type folder struct {
	// group is that of the marker groupName, or empty.
	group string
	// isOptional is true if fields are optional by default.
	isOptional bool
	types      map[string]ast.Expr
	// methods are the names of types and methods, such as FooSpec.CRDTag.
	methods map[string]bool
	// gets are those that markers become.
	gets map[string]bool
	// embedders are the types that embed a type, by its name.
	embedders map[string]string
}

var groupName = regexp.MustCompile(`(?m)^//\s*\+groupName=(\S+)`)

// readFolder reads the package of a file. A file of the package that cannot be read says nothing.
func readFolder(path string) (*folder, error) {
	f := &folder{
		types: make(map[string]ast.Expr), methods: make(map[string]bool), gets: make(map[string]bool),
		embedders: make(map[string]string),
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if match := groupName.FindStringSubmatch(c.Text); match != nil {
					f.group = match[1]
				}
				m, _ := parseMarker(c)
				f.isOptional = f.isOptional || m.name == validation+"Optional" && group.End() < file.Name.Pos()
			}
		}
		for _, declaration := range file.Decls {
			f.add(declaration)
		}
	}
	return f, nil
}

// add adds the types or the method of a declaration.
func (f *folder) add(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && len(d.Recv.List) == 1 {
			f.methods[typeName(d.Recv.List[0].Type)+"."+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			f.types[t.Name.Name] = t.Type
			for _, group := range []*ast.CommentGroup{d.Doc, t.Doc} {
				f.addMarkers(t.Name.Name, group)
			}
			if s, ok := t.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if name, _, _ := jsonTag(field); len(field.Names) == 0 && name == "" {
						f.embedders[typeName(field.Type)] = t.Name.Name
					}
				}
			}
		}
	}
}

// addMarkers adds the methods that a type gets for the markers of a comment.
func (f *folder) addMarkers(name string, group *ast.CommentGroup) {
	if group == nil {
		return
	}
	for _, c := range group.List {
		if m, ok := parseMarker(c); ok {
			directives, _, _ := directivesOf(m, false)
			for _, d := range directives {
				f.gets[name+map[bool]string{true: ".Rules", false: ".CRDTag"}[d.key == "rule" || d.key == "message"]] = true
			}
		}
	}
}

// hasMethod reports whether a type has a method, or gets it for its markers. A type that is declared by another type
// gets the methods of that type.
func (f *folder) hasMethod(name, method string) bool {
	for range len(f.types) {
		if f.methods[name+"."+method] || f.gets[name+"."+method] {
			return true
		}
		base, ok := f.types[name].(*ast.Ident)
		if !ok {
			break
		}
		name = base.Name
	}
	return false
}

// isList reports whether a type is a list.
func (f *folder) isList(t ast.Expr) bool {
	_, ok := f.underlying(t).(*ast.ArrayType)
	return ok
}

// isNullable reports whether the zero value of a type is null in JSON, so that yare takes a field of the type as
// optional.
func (f *folder) isNullable(t ast.Expr) bool {
	switch t := f.underlying(t).(type) {
	case *ast.StarExpr, *ast.MapType, *ast.InterfaceType:
		return true
	case *ast.ArrayType:
		return t.Len == nil
	case *ast.Ident:
		return t.Name == "any"
	case *ast.SelectorExpr:
		return slices.Contains(strings.Fields("Time MicroTime RawExtension RawMessage ResourceList"), t.Sel.Name)
	}
	return false
}

// underlying returns the type of a type that the package declares.
func (f *folder) underlying(t ast.Expr) ast.Expr {
	for range len(f.types) {
		name, ok := t.(*ast.Ident)
		if !ok || f.types[name.Name] == nil {
			break
		}
		t = f.types[name.Name]
	}
	return t
}

// typeName returns the name of a type, without its package, a star and type arguments.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	}
	return ""
}
