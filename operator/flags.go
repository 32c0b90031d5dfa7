package operator

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

var errHelp = errors.New("help was asked for")

// options holds the values of the command line.
type options struct {
	command    string
	config     kube.ConfigSource
	namespaces namespaceList
	listen     string // empty: no listener
	verbose    bool
}

// namespaceList is the value of a flag that may be repeated.
type namespaceList []string

func (l *namespaceList) String() string { return strings.Join(*l, ",") }

func (l *namespaceList) Set(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("the name of a namespace is not valid: %s", problems[0])
	}
	*l = append(*l, name)
	return nil
}

// setListen sets the address to listen on, and checks its form.
func (o *options) setListen(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("the address is not valid: write it as :8080 or 127.0.0.1:8080 (%w)", err)
	}
	o.listen = address
	return nil
}

// parse returns the options in args, or errHelp after printing the help.
func (p program) parse(args []string, needs kube.Needs) (options, error) {
	o := options{command: "run"}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		o.command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet(p.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch o.command {
	case "run":
		flags.StringVar(&o.config.Kubeconfig, "kubeconfig", "", "")
		flags.StringVar(&o.config.Context, "context", "", "")
		flags.Var(&o.namespaces, "namespace", "")
		flags.Var(&o.namespaces, "n", "")
		flags.Func("listen", "", o.setListen)
		flags.BoolVar(&o.verbose, "v", false, "")
	case "crd":
	case "help":
		p.help(needs)
		return o, errHelp
	default:
		return o, fmt.Errorf("unknown command %q: there are run and crd", o.command)
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			p.help(needs)
			return o, errHelp
		}
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%s takes no argument %q", o.command, flags.Arg(0))
	}
	return o, nil
}

// help prints how to call the program.
func (p program) help(needs kube.Needs) {
	var kinds []string
	for _, t := range needs.Defines {
		kinds = append(kinds, fmt.Sprintf("%s (%s, %s)", t.Resource.Kind, t.Resource, t.Resource.Version))
	}
	fmt.Fprintf(p.stdout, `%[1]s is a Kubernetes operator for %[2]s.

Usage:
  %[1]s [run] [flags]   run until a signal
  %[1]s crd             print its CustomResourceDefinitions; to apply them:
  %[3]s

Flags of run:
  --kubeconfig FILE   how to reach the cluster. Default: the files in the environment
                      variable KUBECONFIG, else ~/.kube/config, else, in a Pod, its
                      ServiceAccount
  --context NAME      the context of the kubeconfig. Default: its current one
  --namespace NAME    work in this namespace only; may be repeated. Default: all
  --listen ADDRESS    serve /healthz, /readyz and /metrics there, over HTTP; such as :8080.
                      Default: nowhere
  -v                  log more
`, p.name, strings.Join(kinds, ", "), strings.Repeat(" ", len(p.name)+2)+"                "+crdCommand(p.name)+" | kubectl apply -f -")
}

// programName returns the name of the executable.
func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// crdCommand returns the command line that prints the definitions of this program: its name or,
// because nobody finds the executables that go run makes, go run and its package.
func crdCommand(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") && info.Path != "" && info.Path != "command-line-arguments" {
		return "go run " + info.Path + " crd"
	}
	return name + " crd"
}
