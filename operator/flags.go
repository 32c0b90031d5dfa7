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

// options are what the command line says.
type options struct {
	command    string
	config     kube.ConfigSource
	namespaces namespaceList
	listen     string // empty: no listener
	verbose    bool
}

// namespaceList is a flag that may be repeated.
type namespaceList []string

func (l *namespaceList) String() string { return strings.Join(*l, ",") }

func (l *namespaceList) Set(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("that is no name of a namespace: %s", problems[0])
	}
	*l = append(*l, name)
	return nil
}

// setListen takes an address without opening it.
func (o *options) setListen(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("that is no address: write it as :8080 or 127.0.0.1:8080 (%w)", err)
	}
	o.listen = address
	return nil
}

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

func (p program) help(needs kube.Needs) {
	var kinds []string
	for _, t := range needs.Defines {
		kinds = append(kinds, fmt.Sprintf("%s (%s, %s)", t.Resource.Kind, t.Resource, t.Resource.Version))
	}
	fmt.Fprintf(p.stdout, `%[1]s is a Kubernetes operator for %[2]s.

Usage:
  %[1]s [run] [flags]   run until a signal comes
  %[1]s crd             print its CustomResourceDefinitions; to put them in place:
  %[3]s

Flags of run:
  --kubeconfig FILE   how to reach the cluster. Default: the files in the environment
                      variable KUBECONFIG, else ~/.kube/config, else, in a Pod, its
                      ServiceAccount
  --context NAME      the context of the kubeconfig. Default: its current one
  --namespace NAME    look at this namespace only; may be repeated. Default: all
  --listen ADDRESS    serve /healthz, /readyz and /metrics there, over HTTP; such as :8080.
                      Default: nowhere
  -v                  log more
`, p.name, strings.Join(kinds, ", "), strings.Repeat(" ", len(p.name)+2)+"                "+crdCommand(p.name)+" | kubectl apply -f -")
}

func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// crdCommand is how to call this program's crd again: by its name, unless it was made by
// go run, whose result cannot be found by anybody.
func crdCommand(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") && info.Path != "" && info.Path != "command-line-arguments" {
		return "go run " + info.Path + " crd"
	}
	return name + " crd"
}
