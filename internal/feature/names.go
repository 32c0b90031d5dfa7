package feature

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed names.txt
var table string

// Name is a row of names.txt: a flag or a command of a feature.
type Name struct {
	// IsCommand is true for a command. IsIgnored is true for a flag that a program without the feature ignores.
	IsCommand, IsIgnored bool
	// Package is the package that brings the flag or the command, below the module. Part is the Go expression of a part that
	// brings it, such as livepage.New().
	Package, Part string
	// Name is the name of the flag or the command.
	Name string
	// Argument stands for the value of a flag. It is empty for a flag without a value, and for a command.
	Argument string
	// Commands are the commands that accept a flag. Flags are the flags of package operator that a command accepts.
	Commands, Flags []string
}

// Names returns the flags and the commands of all features, also of those that the program does not import.
func Names() []Name {
	var names []Name
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) != 6 || fields[0] == "#" {
			continue
		}
		n := Name{
			IsCommand: fields[0] == "command", IsIgnored: fields[0] == "ignored",
			Package: fields[1], Part: fields[2], Name: fields[3],
		}
		if fields[4] != "-" {
			n.Argument = fields[4]
		}
		list := strings.Split(fields[5], ",")
		if n.IsCommand {
			n.Flags = list
		} else {
			n.Commands = list
		}
		names = append(names, n)
	}
	return names
}

// String returns the flag or the command for an error.
func (n Name) String() string {
	if n.IsCommand {
		return "the command " + n.Name
	}
	return "the flag --" + n.Name
}

// MissingError returns the error of a program that is called with the flag or the command, and has no part that brings
// it.
func (n Name) MissingError(module string) error {
	return fmt.Errorf("no part of the program has %s: import %s/%s and add %s to the parts, or leave it out",
		n, module, n.Package, n.Part)
}
