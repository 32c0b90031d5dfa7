package operator

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
)

const (
	// helpIndent is the column of the texts about flags.
	helpIndent = 22
	// helpWidth is the longest line of the texts about flags, without their indent.
	helpWidth = 72
)

// writeHelp prints how to call a program of that name. brought are its features. They have nothing, and defined is nil,
// if the parts of the program cannot be made.
func writeHelp(
	w io.Writer, program string, builtIn []flagSpec, brought features, own []*flag.Flag, defined []kube.Type,
) {
	var names []string
	for _, t := range defined { // several parts can have one type
		name := fmt.Sprintf("%s (%s, %s)", t.Resource.Kind, t.Resource, t.Resource.Version)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	kinds := ""
	if len(names) > 0 {
		kinds = " for " + strings.Join(names, ", ")
	}
	command := ownCommand(program)
	fmt.Fprintf(w, "%s is a Kubernetes operator%s.\n\nUsage:\n", program, kinds)
	usage := []feature.Command{
		{Name: "[run] [flags]", Help: "run until a signal"},
		{Name: "crd", Help: "print its CustomResourceDefinitions; to apply them:\n" + command + " crd | kubectl apply -f -"},
		{Name: "permissions", Help: "print the Roles and the ClusterRole that it needs with these flags of run"},
		{Name: "manifests", Help: "print what installs it in a cluster with these flags of run; to apply it:\n" + command +
			" manifests --image IMAGE | kubectl apply --server-side -f -"},
		{Name: "uninstall", Help: "remove it from a cluster"},
		{Name: "version", Help: "print its version"},
	}
	indent := strings.Repeat(" ", len(program)+18)
	for _, c := range append(usage, brought.commands()...) {
		name := fmt.Sprintf("%-13s ", c.Name)
		if len(c.Name) > 13 {
			name = c.Name + "\n" + indent
		}
		fmt.Fprintf(w, "  %s %s%s\n", program, name, strings.ReplaceAll(c.Help, "\n", "\n"+indent))
	}
	commands := ""
	for _, s := range withBrought(builtIn, brought.help()) {
		if s.commands != commands {
			commands = s.commands
			fmt.Fprintf(w, "\nFlags of %s:\n", strings.ReplaceAll(commands, " ", ", "))
		}
		dashes := "--"
		if len(s.name) == 1 {
			dashes = "-"
		}
		set := newFlagSet(program)
		s.addTo(set)
		writeFlag(w, dashes+s.name+" "+s.argument, s.help, set.Lookup(s.name).DefValue)
	}
	for _, c := range brought.commands() {
		fmt.Fprintf(w, "\n%s also accepts: %s\n", c.Name, acceptedFlags(c.Name))
	}
	if len(own) > 0 {
		commands := []string{"run", "crd", "permissions", "manifests", "uninstall"}
		for _, c := range brought.commands() {
			commands = append(commands, c.Name)
		}
		last := len(commands) - 1
		fmt.Fprintf(w, "\nFlags of this program, for %s and %s:\n", strings.Join(commands[:last], ", "), commands[last])
	}
	for _, f := range own {
		value, usage := flag.UnquoteUsage(f)
		writeFlag(w, "--"+f.Name+" "+value, usage, f.DefValue)
	}
}

// acceptedFlags returns the flags of package operator that a command of a feature accepts, for the help.
func acceptedFlags(command string) string {
	var flags []string
	for _, n := range feature.Names() {
		if n.IsCommand && n.Name == command {
			for _, name := range n.Flags {
				flags = append(flags, strings.Repeat("-", min(len(name), 2))+name)
			}
		}
	}
	return strings.Join(flags, ", ")
}

// withBrought returns builtIn with the flags of features, each behind the last flag of the same commands.
func withBrought(builtIn, brought []flagSpec) []flagSpec {
	all := slices.Clone(builtIn)
	for _, s := range brought {
		at := len(all)
		for i, other := range all {
			if other.commands == s.commands {
				at = i + 1
			}
		}
		all = slices.Insert(all, at, s)
	}
	return all
}

// writeFlag prints the help for a flag.
func writeFlag(w io.Writer, name, text, defaultValue string) {
	if defaultValue != "" && defaultValue != "false" && defaultValue != "0" {
		text += fmt.Sprintf(" (default %s)", defaultValue)
	}
	name = "  " + strings.TrimSpace(name)
	indent := strings.Repeat(" ", helpIndent)
	if len(name) < helpIndent {
		name += indent[len(name):]
	} else {
		name += "\n" + indent
	}
	for i, paragraph := range strings.Split(text, "\n") {
		if i > 0 {
			name += "\n" + indent
		}
		column := 0
		for _, word := range strings.Fields(paragraph) {
			if column > 0 && column+len(word) >= helpWidth {
				name, column = name+"\n"+indent, 0
			} else if column > 0 {
				name, column = name+" ", column+1
			}
			name, column = name+word, column+len(word)
		}
	}
	fmt.Fprintln(w, strings.TrimRight(name, " \n"))
}

// executableName returns the name of the executable file.
func executableName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// ownCommand returns how to call this program: its name, or go run and its package. Nobody finds the
// executables of go run.
func ownCommand(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") &&
		info.Path != "" && info.Path != "command-line-arguments" {
		return "go run " + info.Path
	}
	return name
}
