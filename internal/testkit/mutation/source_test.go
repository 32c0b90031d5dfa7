package mutation

import (
	"go/ast"
	"strings"
)

// changedFile is a file with a mutation.
type changedFile struct {
	// name is the path below the root of the module.
	name string
	code []byte
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

// methodOf returns the name of a function without its type.
func methodOf(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }
