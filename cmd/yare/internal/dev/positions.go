package dev

import (
	"context"
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
var problemName = regexp.MustCompile(`^(?:\S+\.go:\d+: )?((?:the custom resource of )?(\w+)\.(\w+)(?:\[.*?\])?((?:\.\w+)*): .*)$`)

// withPositions returns the problems that an operator reports, one a line, each with the file and
// the line of the type or field that it is about, as the user would write the file. A problem of a
// type that is not the user's own is returned unchanged.
func (p program) withPositions(ctx context.Context, problems string) string {
	packages, err := p.packages(ctx)
	if err != nil {
		return problems
	}
	var lines []string
	for line := range strings.Lines(problems) {
		line = strings.TrimRight(line, "\n")
		if found := problemName.FindStringSubmatch(line); found != nil {
			if position := p.declaration(packages, found[2], found[3], strings.Split(found[4], ".")[1:]); position != "" {
				line = position + ": " + found[1]
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// declaration returns the file and the line that declare a type or, if fields are given, the last
// field. The text is empty if no package called pkg declares the type.
func (p program) declaration(packages []sourcePackage, pkg, typeName string, fields []string) string {
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
				at := files.Position(node.Pos())
				return fmt.Sprintf("%s:%d", p.shownName(at.Filename), at.Line)
			}
		}
	}
	return ""
}

// shownName returns the name of a file as the user would write it.
func (p program) shownName(file string) string {
	if relative, err := filepath.Rel(p.dir, file); err == nil {
		return filepath.Join(p.shown, relative)
	}
	return file
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
