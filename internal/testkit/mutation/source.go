package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// changedFile is a file with a mutation.
type changedFile struct {
	// name is the path below the root of the module.
	name string
	code []byte
}

// apply returns the file of the module that a mutation changes. It returns an error if not exactly one place
// of the module fits the mutation.
func (m mutation) apply(module fs.FS) (changedFile, error) {
	p, err := parsePattern(m.pattern)
	if err != nil {
		return changedFile{}, fmt.Errorf("%s: %w", m, err)
	}
	names, err := fs.Glob(module, path.Join(m.folder, "*.go"))
	if err != nil {
		return changedFile{}, err
	}
	var changed []changedFile
	var declared []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		code, err := fs.ReadFile(module, name)
		if err != nil {
			return changedFile{}, err
		}
		if !bytes.Contains(code, []byte(m.method())) {
			continue
		}
		inFile, declaredInFile, err := m.applyToFile(p, name, code)
		if err != nil {
			return changedFile{}, fmt.Errorf("%s: %w", m, err)
		}
		changed, declared = append(changed, inFile...), append(declared, declaredInFile...)
	}
	switch {
	case !slices.Contains(declared, m.function):
		return changedFile{}, fmt.Errorf("%s: package %s declares no %s; it declares %q: change the row in mutations_*.go", m, m.folder, m.function, declared)
	case len(changed) != 1:
		return changedFile{}, fmt.Errorf("%s: %d places of %s fit the pattern, not 1: change the row in mutations_*.go", m, len(changed), m.function)
	}
	return changed[0], nil
}

// applyToFile returns a file with the mutation for each place of the file that fits. It also returns the names
// of those declarations that have the name of the mutated function or method.
func (m mutation) applyToFile(p pattern, name string, code []byte) (changed []changedFile, declared []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, code, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	source := func(start, end token.Pos) string { return string(code[offset(start):offset(end)]) }
	for function, node := range declarations(file) {
		if methodOf(function) == m.method() {
			declared = append(declared, function)
		}
		if function != m.function {
			continue
		}
		for _, f := range p.find(node, source) {
			replacement, err := f.replace(m.replacement, source)
			if err != nil {
				return nil, nil, err
			}
			text := slices.Concat(code[:offset(f.start)], []byte(replacement), code[offset(f.end):])
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				return nil, nil, fmt.Errorf("the changed code: %w", err)
			}
			changed = append(changed, changedFile{name, text})
		}
	}
	return changed, declared, nil
}

// declarations returns the functions, methods, constants and variables of a file by the names that
// mutations use.
func declarations(file *ast.File) map[string]ast.Node {
	byName := make(map[string]ast.Node)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiverType(d.Recv.List[0].Type) + "." + name
			}
			byName[name] = d
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range values.Names {
						byName[name.Name] = values
					}
				}
			}
		}
	}
	return byName
}

// receiverType returns the name of the type of a receiver.
func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.IndexListExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// method returns the name of the mutated function without its type.
func (m mutation) method() string { return methodOf(m.function) }

// methodOf returns the name of a function without its type.
func methodOf(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }
