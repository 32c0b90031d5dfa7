package crd

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"

	"github.com/yare-go/yare/kube"
)

// comments are the doc comments of one package, out of the files that a Definition brings.
// A nil *comments has none.
type comments struct {
	// pkg is the package that the files are taken for: the one of the type that has the
	// Definition.
	pkg   string
	types map[string]string
	// fields are by type and field, as in WebAppSpec.Image, or WebAppSpec.Probe.Path in a
	// struct without a name.
	fields map[string]string
	// wholes are the comments of aliases of kube.CustomResource, by the name of the spec.
	wholes map[string]string
	// fail keeps a problem.
	fail func(error)
}

// kubePackage is where CustomResource is declared.
var kubePackage = reflect.TypeFor[kube.Resource]().PkgPath()

// definer is the type that has the Definition of t: the spec of a custom resource, else
// the type itself.
func definer(t reflect.Type) reflect.Type {
	if t.PkgPath() == kubePackage && declared(t) == "CustomResource" {
		if spec, ok := t.FieldByName("Spec"); ok {
			return spec.Type
		}
	}
	return t
}

// commentsOf reads the Source of the Definition of t.
func commentsOf(t kube.Type, fail func(error)) *comments {
	source := t.Definition.Source
	if source == nil {
		return nil
	}
	owner := definer(t.Go)
	c := &comments{
		pkg:    owner.PkgPath(),
		types:  map[string]string{},
		fields: map[string]string{},
		wholes: map[string]string{},
		fail:   fail,
	}
	found := false
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		found = true
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		c.read(file)
		return nil
	})
	if err == nil && !found {
		err = errors.New("it holds no Go file")
	}
	if err != nil {
		fail(fmt.Errorf("%s: its Definition's Source cannot be read: %w", kube.TypeName(t.Go), err))
		return nil
	}
	return c
}

// read adds the declarations of one file. Of two with the same name, as for two operating
// systems, the first counts.
func (c *comments) read(file *ast.File) {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			spec, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := spec.Doc
			if doc == nil && !group.Lparen.IsValid() {
				doc = group.Doc
			}
			if name := wholeOf(spec.Type); name != "" && c.wholes[name] == "" {
				c.wholes[name] = fold(doc.Text())
			}
			if _, twice := c.types[spec.Name.Name]; !twice {
				c.types[spec.Name.Name] = fold(doc.Text())
				c.readFields(spec.Name.Name, spec.Type)
			}
		}
	}
}

// readFields adds the fields of a struct, and of structs without a name within it.
func (c *comments) readFields(name string, expr ast.Expr) {
	switch t := expr.(type) {
	case *ast.StarExpr:
		c.readFields(name, t.X)
	case *ast.ArrayType:
		c.readFields(name, t.Elt)
	case *ast.MapType:
		c.readFields(name, t.Value)
	case *ast.StructType:
		for _, f := range t.Fields.List {
			text := fold(f.Doc.Text())
			if text == "" {
				text = fold(f.Comment.Text())
			}
			names := f.Names
			if len(names) == 0 {
				names = []*ast.Ident{embedded(f.Type)}
			}
			for _, n := range names {
				c.fields[name+"."+n.Name] = text
				c.readFields(name+"."+n.Name, f.Type)
			}
		}
	}
}

// embedded is the name that an embedded field has by its type.
func embedded(expr ast.Expr) *ast.Ident {
	switch t := expr.(type) {
	case *ast.Ident:
		return t
	case *ast.StarExpr:
		return embedded(t.X)
	case *ast.SelectorExpr:
		return t.Sel
	case *ast.IndexExpr:
		return embedded(t.X)
	case *ast.IndexListExpr:
		return embedded(t.X)
	}
	return ast.NewIdent("_")
}

// wholeOf is the name of the spec in kube.CustomResource[Spec, Status], and nothing for
// other types.
func wholeOf(expr ast.Expr) string {
	list, ok := expr.(*ast.IndexListExpr)
	if !ok || len(list.Indices) != 2 || embedded(list.X).Name != "CustomResource" {
		return ""
	}
	return embedded(list.Indices[0]).Name
}

// ofType is the comment of t, if t is declared in the package.
func (c *comments) ofType(t reflect.Type) string {
	if c == nil || t.PkgPath() != c.pkg || t.Name() == "" {
		return ""
	}
	text, ok := c.types[declared(t)]
	if !ok {
		c.fail(fmt.Errorf("%s: the Source of the Definition does not hold the file that declares it; embed all files with types of the resource, as in //go:embed *.go", t))
	}
	return text
}

// ofField is the comment of f, if f is declared in the package.
func (c *comments) ofField(f field) string {
	if c == nil || f.in.pkg != c.pkg {
		return ""
	}
	return c.fields[f.in.decl+"."+f.Name]
}

// ofRoot is the comment of the whole object: of the alias that puts it together, or of the
// struct that is declared for it.
func (c *comments) ofRoot(t reflect.Type) string {
	if c == nil {
		return ""
	}
	if owner := definer(t); owner != t {
		return c.wholes[declared(owner)]
	}
	return c.ofType(t)
}
