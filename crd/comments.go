package crd

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
)

// sources holds the comments of the packages of a resource, from its Definition. A nil *sources has
// no comments.
type sources struct {
	// home is the path of the package of the type that has the Definition.
	home     string
	packages map[string]*comments
	fail     func(error)
}

// comments holds the doc comments of one package.
type comments struct {
	// unread holds the files until a type of the package is described.
	unread fs.FS
	types  map[string]string
	// fields holds comments by type and field, as in WebAppSpec.Image, or
	// WebAppSpec.Probe.Path in a struct without a name.
	fields map[string]string
	// aliases holds the comments of aliases of kube.CustomResource, by the name of the spec.
	aliases map[string]string
	// positions holds the file and the line of each type and field, by the names that errors have
	// for them, as in main.WebAppSpec.Image.
	positions map[string]string
}

// kubePackage is the path of the package that declares CustomResource.
var kubePackage = reflect.TypeFor[kube.Resource]().PkgPath()

// definer returns the type that has the Definition of t: the spec of a kube.CustomResource,
// otherwise t itself.
func definer(t reflect.Type) reflect.Type {
	if t.PkgPath() == kubePackage && declaredName(t) == "CustomResource" {
		if spec, ok := t.FieldByName("Spec"); ok {
			return spec.Type
		}
	}
	return t
}

// sourcesOf returns the sources of the Definition of t. fail records a problem.
func sourcesOf(t kube.Type, fail func(error)) *sources {
	d, owner := t.Definition, definer(t.Go)
	s := &sources{home: owner.PkgPath(), packages: map[string]*comments{}, fail: fail}
	for pkg, files := range d.OtherSources {
		s.packages[pkg] = &comments{unread: files}
	}
	if d.Source != nil {
		s.packages[s.home] = &comments{unread: d.Source}
		s.commentsOf(owner)
	}
	return s
}

// commentsOf returns the comments of the package of t, or nil if there is no source of it.
func (s *sources) commentsOf(t reflect.Type) *comments {
	if s == nil || t.Name() == "" {
		return nil
	}
	c := s.packages[t.PkgPath()]
	if c == nil || c.unread == nil {
		return c
	}
	source := c.unread
	*c = comments{types: map[string]string{}, fields: map[string]string{}, aliases: map[string]string{}, positions: map[string]string{}}
	if err := c.readPackage(source, t); err != nil {
		s.fail(fmt.Errorf("%s: the source of its package cannot be read: %w", t, err))
		*c = comments{}
	}
	return c
}

// checkUse records a problem for each package of OtherSources that has no type of the resource.
func (s *sources) checkUse(name string) {
	for _, pkg := range slices.Sorted(maps.Keys(s.packages)) {
		if s.packages[pkg].unread != nil {
			s.fail(fmt.Errorf("%s: its Definition's OtherSources[%q]: no type of the resource is in a package with this import path", name, pkg))
		}
	}
}

// readPackage adds the declarations of the package of owner in source: of the files in the folder of the
// file that declares owner, with its package clause. A folder that is embedded as a whole
// also holds tests and, below it, other packages, whose types can have the same names.
func (c *comments) readPackage(source fs.FS, owner reflect.Type) error {
	pkg, _, _ := strings.Cut(owner.String(), ".")
	positions := token.NewFileSet()
	folders := map[string][]*ast.File{}
	found, home := false, ""
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		found = true
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
		// Only a package of tests has its types in test files.
		isTest := strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(pkg, "_test")
		if isTest || file.Name.Name != pkg && file.Name.Name != "" {
			return nil
		}
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		folders[folder] = append(folders[folder], file)
		for spec := range typeSpecs(file) {
			if home == "" && spec.Name.Name == declaredName(owner) {
				home = folder
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("it holds no Go file")
	}
	for _, file := range folders[home] {
		c.readFile(positions, file)
	}
	return nil
}

// readFile adds the declarations of one file. If two have the same name, as for two operating
// systems, the first declaration counts.
func (c *comments) readFile(positions *token.FileSet, file *ast.File) {
	record := func(name string, node ast.Node) {
		at := positions.PositionFor(node.Pos(), false)
		c.positions[file.Name.Name+"."+name] = fmt.Sprintf("%s:%d", at.Filename, at.Line)
	}
	for spec, doc := range typeSpecs(file) {
		if name := specOfCustomResource(spec.Type); name != "" && c.aliases[name] == "" {
			c.aliases[name] = fold(doc.Text())
		}
		if _, twice := c.types[spec.Name.Name]; !twice {
			c.types[spec.Name.Name] = fold(doc.Text())
			record(spec.Name.Name, spec)
			c.readFields(spec.Name.Name, spec.Type, record)
		}
	}
}

// readFields adds the fields of a struct called name, and of structs without a name within it: behind
// pointers, and as the elements of arrays and maps.
func (c *comments) readFields(name string, expr ast.Expr, record func(name string, node ast.Node)) {
	switch t := expr.(type) {
	case *ast.StarExpr:
		c.readFields(name, t.X, record)
	case *ast.ArrayType:
		c.readFields(name, t.Elt, record)
	case *ast.MapType:
		c.readFields(name, t.Value, record)
	case *ast.StructType:
		for _, f := range t.Fields.List {
			text := fold(f.Doc.Text())
			if text == "" {
				text = fold(f.Comment.Text())
			}
			names := f.Names
			if len(names) == 0 {
				names = []*ast.Ident{embeddedName(f.Type)}
			}
			for _, n := range names {
				inner := name + "." + n.Name
				c.fields[inner] = text
				record(inner, f)
				c.readFields(inner, f.Type, record)
			}
		}
	}
}

// typeSpecs returns a sequence of the types that file declares outside of functions, with their comments.
func typeSpecs(file *ast.File) iter.Seq2[*ast.TypeSpec, *ast.CommentGroup] {
	return func(yield func(*ast.TypeSpec, *ast.CommentGroup) bool) {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok {
					break // the group declares no types
				}
				doc := spec.Doc
				if doc == nil && !group.Lparen.IsValid() {
					doc = group.Doc
				}
				if !yield(spec, doc) {
					return
				}
			}
		}
	}
}

// embeddedName returns the name that an embedded field has by its type.
func embeddedName(expr ast.Expr) *ast.Ident {
	switch t := expr.(type) {
	case *ast.Ident:
		return t
	case *ast.StarExpr:
		return embeddedName(t.X)
	case *ast.SelectorExpr:
		return t.Sel
	case *ast.IndexExpr:
		return embeddedName(t.X)
	case *ast.IndexListExpr:
		return embeddedName(t.X)
	}
	return ast.NewIdent("_")
}

// specOfCustomResource returns the name of the spec in kube.CustomResource[Spec, Status]. It is empty
// for other types.
func specOfCustomResource(expr ast.Expr) string {
	list, ok := expr.(*ast.IndexListExpr)
	if !ok || len(list.Indices) != 2 || embeddedName(list.X).Name != "CustomResource" {
		return ""
	}
	return embeddedName(list.Indices[0]).Name
}

// position returns the file and the line that declare what an error calls name, as in
// "main.WebAppSpec.Image" or "main.WebAppSpec: its method Rules". It is empty if they are unknown
// or if several packages have the name.
func (s *sources) position(name string) string {
	if s == nil {
		return ""
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "the custom resource of "), ": ")
	// The name of a generic type has its arguments, as in main.Pair[string,int].First.
	if before, after, generic := strings.Cut(name, "["); generic {
		name = before + after[strings.LastIndexByte(after, ']')+1:]
	}
	found := ""
	for _, c := range s.packages {
		if at := c.positions[name]; at != "" && found != "" {
			return ""
		} else if at != "" {
			found = at
		}
	}
	return found
}

// ofType returns the comment of t, if there is a source of its package.
func (s *sources) ofType(t reflect.Type) string {
	c := s.commentsOf(t)
	if c == nil || c.types == nil {
		return ""
	}
	text, ok := c.types[declaredName(t)]
	if !ok {
		which := "Source of the Definition"
		if t.PkgPath() != s.home {
			which = fmt.Sprintf("Definition's OtherSources[%q]", t.PkgPath())
		}
		s.fail(fmt.Errorf("%s: the %s does not hold the file that declares it, which must not be a test: embed all files with types of the resource, as in //go:embed *.go", t, which))
	}
	return text
}

// ofField returns the comment of f, if there is a source of its package.
func (s *sources) ofField(f field) string {
	if s == nil || s.packages[f.in.pkg] == nil {
		return ""
	}
	return s.packages[f.in.pkg].fields[f.in.decl+"."+f.Name]
}

// ofRoot returns the comment of the whole object: the comment of the alias of
// kube.CustomResource, or of the struct that is declared for the object.
func (s *sources) ofRoot(t reflect.Type) string {
	owner := definer(t)
	if owner == t {
		return s.ofType(t)
	}
	if c := s.commentsOf(owner); c != nil {
		return c.aliases[declaredName(owner)]
	}
	return ""
}
