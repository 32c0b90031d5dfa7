package feature

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed names.txt
var table string

// FlagName is a row of names.txt.
type FlagName struct {
	// Package is the package that brings the flag, below the module, and Part is how a program calls it.
	Package, Part string
	// Name is the name of the flag. Argument stands for its value, and is empty for a flag without a value.
	Name, Argument string
	// Commands are the commands that accept the flag.
	Commands []string
}

// FlagNames returns the flags of all features, also of those that the program does not import.
func FlagNames() []FlagName {
	var names []FlagName
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) != 5 || fields[0] == "#" {
			continue
		}
		n := FlagName{Package: fields[0], Part: fields[1], Name: fields[2], Commands: strings.Split(fields[4], ",")}
		if fields[3] != "-" {
			n.Argument = fields[3]
		}
		names = append(names, n)
	}
	return names
}

// MissingError returns the error of a program that is called with the flag, and has no part that brings it.
func (n FlagName) MissingError(module string) error {
	return fmt.Errorf("the flag --%s belongs to a part that the program has not: import %s/%s and add %s to its parts, or leave the flag out",
		n.Name, module, n.Package, n.Part)
}
