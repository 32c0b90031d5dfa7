package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/plane"
)

// template holds the files of a new project. It is a package of its own, with its test.
//
//go:embed template
var template embed.FS

// The names in template that each project replaces by its own.
const (
	templateName  = "widget-operator"
	templateKind  = "Widget"
	templateGroup = "template.example.com"
)

// project is an operator that does not exist yet.
type project struct {
	// Dir is the folder.
	Dir string
	// Name is the name of the program, the last part of Dir.
	Name string
	// Module is the path of the Go module.
	Module string
	// Kind and Group name the custom resource.
	Kind, Group string
}

// kindPattern matches the names of kinds that Kubernetes and Go accept.
var kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// complete returns p with all names, or an error if a name is invalid.
func (p project) complete() (project, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return p, fmt.Errorf("%s: %w", p.Dir, err)
	}
	p.Dir, p.Name = dir, filepath.Base(dir)
	if p.Module == "" {
		p.Module = "example.com/" + p.Name
	}
	if err := module.CheckImportPath(p.Module); err != nil {
		return p, fmt.Errorf(
			"%q is not valid as the path of a Go module: set another with --module, such as example.com/web-app (%w)",
			p.Module, err)
	}
	if p.Module == plane.ModulePath || strings.HasPrefix(p.Module, plane.ModulePath+"/") {
		return p, fmt.Errorf("the module %s would be a part of yare: set another with --module, such as example.com/web-app",
			p.Module)
	}
	if p.Kind == "" {
		p.Kind = kindOf(p.Name)
	}
	if !kindPattern.MatchString(p.Kind) {
		return p, fmt.Errorf("%q is not valid as a kind, which is a capital letter and up to 62 letters and digits: set another with --kind, such as WebApp", p.Kind)
	}
	if problems := validation.IsDNS1123Subdomain(p.Group); len(problems) > 0 || !strings.Contains(p.Group, ".") {
		return p, fmt.Errorf("%q is not valid as an API group: set a domain of yours with --group, such as example.com",
			p.Group)
	}
	for _, reserved := range []string{"k8s.io", "kubernetes.io"} {
		if p.Group == reserved || strings.HasSuffix(p.Group, "."+reserved) {
			return p, fmt.Errorf(
				"the API group %q belongs to Kubernetes: set a domain of yours with --group, such as example.com", p.Group)
		}
	}
	return p, nil
}

// programNameOf returns the name of the program of a project, as a label of DNS: myhttp-proxy for myHTTP_proxy.
func programNameOf(p project) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return unicode.ToLower(r)
		}
		return '-'
	}, p.Name)
	name = strings.Trim(strings.TrimLeft(name[:min(len(name), 50)], "0123456789-"), "-")
	return cmp.Or(name, strings.ToLower(p.Kind))
}

// kindOf returns the kind for the name of an operator: WebApp for web-app-operator.
func kindOf(name string) string {
	name = strings.TrimSuffix(name, "-operator")
	var kind strings.Builder
	isSeparator := func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == ' ' }
	for word := range strings.FieldsFuncSeq(name, isSeparator) {
		kind.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return kind.String()
}

// write writes the files, and returns their paths in the folder. A folder that is not empty is an
// error.
func (p project) write(yare plane.Location) (names []string, err error) {
	entries, err := os.ReadDir(p.Dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("the folder %s is not empty: name one that is empty or does not exist", p.Dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s cannot be the folder of a new operator: %w", p.Dir, err)
	}
	replacer := strings.NewReplacer(
		`"`+templateName+`"`, `"`+programNameOf(p)+`"`, // the field Name of operator.Program, and a label
		templateName, p.Name, templateKind, p.Kind,
		strings.ToLower(templateKind), strings.ToLower(p.Kind), templateGroup, p.Group,
	)
	for _, file := range []struct{ source, target string }{
		{"main.go", "main.go"},
		{"main_test.go", "main_test.go"},
		{"sample.yaml", "sample.yaml"},
		{"README.md", "README.md"},
		{"AGENTS.md", "AGENTS.md"},
		{"test.yml", ".github/workflows/test.yml"},
	} {
		text, err := template.ReadFile(path.Join("template", file.source))
		if err != nil {
			return nil, fmt.Errorf("read the template: %w", err)
		}
		content := []byte(replacer.Replace(string(text)))
		if path.Ext(file.source) == ".go" {
			if content, err = format.Source(content); err != nil {
				return nil, fmt.Errorf("make %s: %w", file.target, err)
			}
		}
		if file.target == "README.md" && yare.Dir != "" {
			content = append(content,
				"\nUntil yare is published, go.mod replaces it by a clone on this machine, which CI does not have.\n"...)
		}
		if err := p.writeFile(file.target, content); err != nil {
			return nil, err
		}
		names = append(names, file.target)
	}
	return append(names, "go.mod"), p.writeFile("go.mod", p.goMod(yare))
}

func (p project) writeFile(name string, content []byte) error {
	name = filepath.Join(p.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return fmt.Errorf("create the project: %w", err)
	}
	if err := os.WriteFile(name, content, 0o666); err != nil {
		return fmt.Errorf("create the project: %w", err)
	}
	return nil
}

// goMod returns the content of go.mod. go mod tidy adds the other requirements.
func (p project) goMod(yare plane.Location) []byte {
	version := yare.Version
	if version == "" {
		version = "v0.0.0"
	}
	// go mod tidy raises the version of Go if yare needs a later one.
	text := fmt.Sprintf("module %s\n\ngo 1.26.0\n\ntool %s/cmd/yare\n\nrequire %s %s\n",
		p.Module, plane.ModulePath, plane.ModulePath, version)
	if yare.Dir != "" {
		text += fmt.Sprintf("\nreplace %s => %s\n", plane.ModulePath, modfile.AutoQuote(yare.Dir))
	}
	return []byte(text)
}
