package crd

import (
	"errors"
	"fmt"
	"io/fs"
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
	home       string
	packages   map[string]*comments
	addProblem func(error)
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
var kubePackage = reflect.TypeFor[kube.Definition]().PkgPath()

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

// sourcesOf returns the sources of the Definition of t. addProblem records a problem.
func sourcesOf(t kube.Type, addProblem func(error)) *sources {
	d, owner := t.Definition, definer(t.Go)
	s := &sources{home: owner.PkgPath(), packages: map[string]*comments{}, addProblem: addProblem}
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
	files, err := filesOf(c.unread, t)
	if err != nil {
		s.addProblem(fmt.Errorf("%s: the source of its package cannot be read: %w", t, err))
		*c = comments{}
		return c
	}
	*c = comments{
		types: map[string]string{}, fields: map[string]string{}, aliases: map[string]string{}, positions: map[string]string{},
	}
	for _, file := range files {
		c.read(file)
	}
	return c
}

// checkUse records a problem for each package of OtherSources that has no type of the resource.
func (s *sources) checkUse(name string) {
	for _, pkg := range slices.Sorted(maps.Keys(s.packages)) {
		if s.packages[pkg].unread != nil {
			s.addProblem(fmt.Errorf(
				"%s: its Definition's OtherSources[%q]: no type of the resource is in a package with this import path", name, pkg))
		}
	}
}

// filesOf returns the files of the package of owner in source: the files in the folder of the file
// that declares owner, with its package clause. A folder that is embedded as a whole also holds
// tests and, below the folder, other packages. The types in the other packages can have the same
// names.
func filesOf(source fs.FS, owner reflect.Type) ([]*sourceFile, error) {
	pkg, _, _ := strings.Cut(owner.String(), ".")
	folders := map[string][]*sourceFile{}
	var home string
	hasGoFile, isDeclared := false, false
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		hasGoFile = true
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
		if !isDeclared && file.declares(declaredName(owner)) {
			home, isDeclared = folder, true
		}
		return nil
	})
	if err == nil && !hasGoFile {
		err = errors.New("it holds no Go file")
	}
	return folders[home], err
}

// read adds the declarations of one file. If two have the same name, as for two operating
// systems, the first declaration counts.
func (c *comments) read(file *sourceFile) {
	for _, t := range file.types {
		if t.spec != "" && c.aliases[t.spec] == "" {
			c.aliases[t.spec] = descriptionOf(t.doc)
		}
		if _, twice := c.types[t.name]; twice {
			continue
		}
		c.types[t.name] = descriptionOf(t.doc)
		name := file.pkg + "." + t.name
		c.positions[name] = fmt.Sprintf("%s:%d", file.name, t.line)
		for _, f := range t.fields {
			c.fields[t.name+"."+f.path] = f.text
			c.positions[name+"."+f.path] = fmt.Sprintf("%s:%d", file.name, f.line)
		}
	}
}

// declaredAt returns the file and the line that declare what an error calls name, as in
// "main.WebAppSpec.Image" or "main.WebAppSpec: its method Rules". It is empty if they are unknown
// or if several packages have the name.
func (s *sources) declaredAt(name string) string {
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

// commentOfType returns the comment of t, if there is a source of its package.
func (s *sources) commentOfType(t reflect.Type) string {
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
		s.addProblem(fmt.Errorf("%s: the %s does not hold the file that declares it, which must not be a test: embed all files with types of the resource, as in //go:embed *.go", t, which))
	}
	return text
}

// commentOfField returns the comment of f, if there is a source of its package.
func (s *sources) commentOfField(f field) string {
	if s == nil || s.packages[f.owner.pkg] == nil {
		return ""
	}
	return s.packages[f.owner.pkg].fields[f.owner.decl+"."+f.Name]
}

// commentOfRoot returns the comment of the whole object: the comment of the alias of
// kube.CustomResource, or of the struct that is declared for the object.
func (s *sources) commentOfRoot(t reflect.Type) string {
	owner := definer(t)
	if owner == t {
		return s.commentOfType(t)
	}
	if c := s.commentsOf(owner); c != nil {
		return c.aliases[declaredName(owner)]
	}
	return ""
}
