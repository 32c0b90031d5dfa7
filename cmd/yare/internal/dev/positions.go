package dev

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// problemName matches the beginning of a problem that package crd reports: perhaps a position, and
// then the name of a type or a field, as in main.WebAppSpec.Image.
var problemName = regexp.MustCompile(
	`^(?:\S+\.go:\d+: )?((?:the custom resource of )?(\w+)\.(\w+)(?:\[.*?\])?((?:\.\w+)*): .*)$`)

// withPositions returns the problems that an operator reports, one a line, each with the file and
// the line of its type or field, as the user would write the file. A problem of a type that is not the
// user's own is returned unchanged.
//
// For example, the problem "main.WebAppSpec.Image: the tag has no value" becomes
// "examples/webapp/main.go:27: main.WebAppSpec.Image: the tag has no value".
func withPositions(problems string, packages []sourcePackage, shownName func(file string) string) string {
	var lines []string
	for line := range strings.Lines(problems) {
		line = strings.TrimRight(line, "\n")
		if found := problemName.FindStringSubmatch(line); found != nil {
			if at, ok := declaration(packages, found[2], found[3], strings.Split(found[4], ".")[1:]); ok {
				line = fmt.Sprintf("%s:%d: %s", shownName(at.Filename), at.Line, found[1])
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// declaration returns the position of the declaration of a type or, if fields are given, of the last
// field. It reports false if no package called pkg declares the type.
func declaration(packages []sourcePackage, pkg, typeName string, fields []string) (at token.Position, ok bool) {
	for _, each := range packages {
		if each.Name != pkg {
			continue
		}
		for _, name := range each.GoFiles {
			files := token.NewFileSet()
			// A file that compiles has no errors.
			file, err := parser.ParseFile(files, filepath.Join(each.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				continue
			}
			if node := declarationIn(file, typeName, fields); node != nil {
				return files.Position(node.Pos()), true
			}
		}
	}
	return at, false
}

// declarationIn returns the node of a type, or of a field of it, or nil if the file does not declare
// the type.
func declarationIn(file *ast.File, typeName string, fields []string) ast.Node {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.Name == typeName {
				if field := fieldIn(spec.Type, fields); field != nil {
					return field
				}
				return spec
			}
		}
	}
	return nil
}

// fieldIn returns the field that the names lead to from a type, or nil.
func fieldIn(expr ast.Expr, names []string) ast.Node {
	switch t := expr.(type) {
	case *ast.StarExpr:
		return fieldIn(t.X, names)
	case *ast.ArrayType:
		return fieldIn(t.Elt, names)
	case *ast.MapType:
		return fieldIn(t.Value, names)
	case *ast.StructType:
		if len(names) == 0 {
			return nil
		}
		for _, f := range t.Fields.List {
			for _, name := range f.Names {
				if name.Name != names[0] {
					continue
				}
				if inner := fieldIn(f.Type, names[1:]); inner != nil {
					return inner
				}
				return f
			}
		}
	}
	return nil
}
