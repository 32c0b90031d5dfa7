package operator

import (
	"fmt"
	"io"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// definitionPrinter prints the CustomResourceDefinitions of a program, for the command crd.
type definitionPrinter struct {
	program string
	// folder is where a file for each definition is written. It is empty for out.
	folder string
	// out gets the definitions. warnings gets a line for each loss of generators of clients.
	out, warnings io.Writer
}

// print prints the definitions of types.
func (p definitionPrinter) print(types []kube.Type) error {
	if len(types) == 0 {
		_, err := fmt.Fprintf(p.out, "# %s has no CustomResourceDefinition of its own.\n", p.program)
		return err
	}
	definitions, err := crd.From(types...)
	if err != nil {
		return err
	}
	warnings, err := crd.Warnings(types...)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		fmt.Fprintf(p.warnings, "%s: warning: %s\n", p.program, warning)
	}
	if p.folder != "" {
		return manifests.WriteDefinitions(p.folder, p.program, definitions)
	}
	return crd.WriteYAML(p.out, definitions...)
}
