package crd

import (
	"errors"
	"fmt"
	"io/fs"
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
	// positions holds the file and the line of each type and field, by the names that errors have
	// for them, as in main.WebAppSpec.Image.
	positions map[string]string
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
		pkg:       owner.PkgPath(),
		types:     map[string]string{},
		fields:    map[string]string{},
		aliases:   map[string]string{},
		positions: map[string]string{},
		fail:      fail,
	}
	for _, file := range files {
		c.read(file)
	}
	return c
}

// filesOf returns the files of the package of owner in source: those in the folder of the
// file that declares owner, with its package clause. A folder that is embedded as a whole
// also holds tests and, below it, other packages, whose types can have the same names.
func filesOf(source fs.FS, owner reflect.Type) ([]*sourceFile, error) {
	pkg, _, _ := strings.Cut(owner.String(), ".")
	folders := map[string][]*sourceFile{}
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
		file, err := readSource(name, text, pkg)
		if err != nil {
			return err
		}
		// Only a package of tests has its types in test files.
		isTest := strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(pkg, "_test")
		if file.pkg != pkg || isTest {
			return nil
		}
		folder := path.Dir(name)
		folders[folder] = append(folders[folder], file)
		if !declared && file.declares(declaredName(owner)) {
			home, declared = folder, true
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("it holds no Go file")
	}
	return folders[home], err
}

// read adds the declarations of one file. Of two with the same name, as for two operating
// systems, the first counts.
func (c *comments) read(file *sourceFile) {
	for _, t := range file.types {
		if t.spec != "" && c.aliases[t.spec] == "" {
			c.aliases[t.spec] = fold(t.doc)
		}
		if _, twice := c.types[t.name]; twice {
			continue
		}
		c.types[t.name] = fold(t.doc)
		name := file.pkg + "." + t.name
		c.positions[name] = fmt.Sprintf("%s:%d", file.name, t.line)
		for _, f := range t.fields {
			c.fields[t.name+"."+f.path] = f.text
			c.positions[name+"."+f.path] = fmt.Sprintf("%s:%d", file.name, f.line)
		}
	}
}

// position returns the file and the line that declare what an error calls name, as in
// "main.WebAppSpec.Image" or "main.WebAppSpec: its method Rules". It is empty if they are unknown.
func (c *comments) position(name string) string {
	if c == nil {
		return ""
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "the custom resource of "), ": ")
	// The name of a generic type has its arguments, as in main.Pair[string,int].First.
	if before, after, generic := strings.Cut(name, "["); generic {
		name = before + after[strings.LastIndexByte(after, ']')+1:]
	}
	return c.positions[name]
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
