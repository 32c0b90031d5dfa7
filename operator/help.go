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

	"github.com/yare-go/yare/kube"
)

const (
	// helpIndent is the column of the texts about flags.
	helpIndent = 22
	// helpWidth is the longest line of the texts about flags, without their indent.
	helpWidth = 72
)

// writeHelp prints how to call a program of that name. brought are the flags of its features. brought, parts and
// defined are nil if the parts of the program cannot be made.
func writeHelp(
	w io.Writer, program string, builtIn, brought []flagSpec, own []*flag.Flag, parts []Part, defined []kube.Type,
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
	indent := "\n" + strings.Repeat(" ", len(program)+18)
	command := ownCommand(program)
	fmt.Fprintf(w, "%s is a Kubernetes operator%s.\n\nUsage:\n", program, kinds)
	for _, c := range [][2]string{
		{"[run] [flags]", "run until a signal"},
		{"crd", "print its CustomResourceDefinitions; to apply them:" + indent + command + " crd | kubectl apply -f -"},
		{"permissions", "print the Roles and the ClusterRole that it needs with these flags of run"},
		{"manifests", "print what installs it in a cluster with these flags of run; to apply it:" + indent + command +
			" manifests --image IMAGE | kubectl apply --server-side -f -"},
		{"uninstall", "remove it from a cluster"},
		{"version", "print its version"},
	} {
		fmt.Fprintf(w, "  %s %-13s %s\n", program, c[0], c[1])
	}
	hasConverter := len(convertedKinds(parts)) > 0
	if hasConverter {
		fmt.Fprintf(w, "  %s %-13s %s\n",
			program, "migrate", "store all objects in the storage version, so that a version can go. It needs get,"+indent+
				"list and patch of the objects with their status, and of the CustomResourceDefinitions")
	}
	servesCalls := hasWebhooksOrConverters(parts)
	if servesCalls {
		fmt.Fprintf(w, "  %s %s\n%sreplace the CA of its webhooks at once, as after the theft of a key, in the\n%s"+
			"installation that --namespace and --name-prefix name. Calls may fail for seconds\n", program,
			revokeCommand, indent[1:], indent[1:])
	}
	commands := ""
	for _, s := range withBrought(builtIn, brought) {
		if !servesCalls && strings.HasPrefix(s.name, "webhook") {
			continue
		}
		if !hasConverter && s.commands == "migrate" {
			continue
		}
		if s.commands != commands {
			commands = s.commands
			fmt.Fprintf(w, "\nFlags of %s:\n", strings.ReplaceAll(strings.TrimSuffix(commands, " "+revokeCommand), " ", ", "))
		}
		dashes := "--"
		if len(s.name) == 1 {
			dashes = "-"
		}
		set := newFlagSet(program)
		s.addTo(set)
		writeFlag(w, dashes+s.name+" "+s.argument, s.help, set.Lookup(s.name).DefValue)
	}
	if len(own) > 0 {
		fmt.Fprint(w, "\nFlags of this program, for run, crd, permissions, manifests, uninstall and migrate:\n")
	}
	for _, f := range own {
		value, usage := flag.UnquoteUsage(f)
		writeFlag(w, "--"+f.Name+" "+value, usage, f.DefValue)
	}
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
