package crd

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"path"
	"reflect"
	"strings"

	"github.com/yare-go/yare/kube"
)

// comments holds the doc comments of one package, from the Source of a Definition. A nil
// *comments has none.
type comments struct {
	// pkg is the path of the package: the one of the type that has the Definition.
	pkg   string
	types map[string]string
	// fields holds comments by type and field, as in WebAppSpec.Image, or
	// WebAppSpec.Probe.Path in a struct without a name.
	fields map[string]string
	// aliases holds the comments of aliases of kube.CustomResource, by the name of the spec.
	aliases map[string]string
	// fail records a problem.
	fail func(error)
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

// commentsOf returns the comments in the Source of the Definition of t.
func commentsOf(t kube.Type, fail func(error)) *comments {
	source := t.Definition.Source
	if source == nil {
		return nil
	}
	owner := definer(t.Go)
	files, err := filesOf(source, owner)
	if err != nil {
		fail(fmt.Errorf("%s: its Definition's Source cannot be read: %w", kube.TypeName(t.Go), err))
		return nil
	}
	c := &comments{
		pkg:     owner.PkgPath(),
		types:   map[string]string{},
		fields:  map[string]string{},
		aliases: map[string]string{},
		fail:    fail,
	}
	for _, file := range files {
		c.read(file)
	}
	return c
}

// filesOf returns the files of the package of owner in source: those in the folder of the
// file that declares owner, with its package clause. A folder that is embedded as a whole
// also holds tests and, below it, other packages, whose types can have the same names.
func filesOf(source fs.FS, owner reflect.Type) ([]*ast.File, error) {
	pkg, _, _ := strings.Cut(owner.String(), ".")
	folders := map[string][]*ast.File{}
	var home string
	found, declared := false, false
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		found = true
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		// Only a package of tests has its types in test files.
		isTest := strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(pkg, "_test")
		if file.Name.Name != pkg || isTest {
			return nil
		}
		file, err = parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		folders[folder] = append(folders[folder], file)
		if !declared && declares(file, declaredName(owner)) {
			home, declared = folder, true
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("it holds no Go file")
	}
	return folders[home], err
}

// declares reports whether file declares a type called name.
func declares(file *ast.File, name string) bool {
	for spec := range typeSpecs(file) {
		if spec.Name.Name == name {
			return true
		}
	}
	return false
}

// typeSpecs returns a sequence of the types that file declares, with their comments.
func typeSpecs(file *ast.File) iter.Seq2[*ast.TypeSpec, *ast.CommentGroup] {
	return func(yield func(*ast.TypeSpec, *ast.CommentGroup) bool) {
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
				if !yield(spec, doc) {
					return
				}
			}
		}
	}
}

// read adds the declarations of one file. Of two with the same name, as for two operating
// systems, the first counts.
func (c *comments) read(file *ast.File) {
	for spec, doc := range typeSpecs(file) {
		if name := specOfAlias(spec.Type); name != "" && c.aliases[name] == "" {
			c.aliases[name] = fold(doc.Text())
		}
		if _, twice := c.types[spec.Name.Name]; !twice {
			c.types[spec.Name.Name] = fold(doc.Text())
			c.readFields(spec.Name.Name, spec.Type)
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
				names = []*ast.Ident{embeddedName(f.Type)}
			}
			for _, n := range names {
				c.fields[name+"."+n.Name] = text
				c.readFields(name+"."+n.Name, f.Type)
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

// specOfAlias returns the name of the spec in kube.CustomResource[Spec, Status]. It is empty
// for other types.
func specOfAlias(expr ast.Expr) string {
	list, ok := expr.(*ast.IndexListExpr)
	if !ok || len(list.Indices) != 2 || embeddedName(list.X).Name != "CustomResource" {
		return ""
	}
	return embeddedName(list.Indices[0]).Name
}

// ofType returns the comment of t, if t is declared in the package.
func (c *comments) ofType(t reflect.Type) string {
	if c == nil || t.PkgPath() != c.pkg || t.Name() == "" {
		return ""
	}
	text, ok := c.types[declaredName(t)]
	if !ok {
		c.fail(fmt.Errorf("%s: the Source of the Definition does not hold the file that declares it, which must not be a test: embed all files with types of the resource, as in //go:embed *.go", t))
	}
	return text
}

// ofField returns the comment of f, if f is declared in the package.
func (c *comments) ofField(f field) string {
	if c == nil || f.in.pkg != c.pkg {
		return ""
	}
	return c.fields[f.in.decl+"."+f.Name]
}

// ofRoot returns the comment of the whole object: that of the alias of kube.CustomResource,
// or of the struct that is declared for it.
func (c *comments) ofRoot(t reflect.Type) string {
	if c == nil {
		return ""
	}
	if owner := definer(t); owner != t {
		return c.aliases[declaredName(owner)]
	}
	return c.ofType(t)
}
