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
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
)

// commandLine is the command line of a program.
type commandLine struct {
	name string
	// flags holds the program's own flags at first. parse adds those of the command.
	flags *flag.FlagSet
	// own are the program's own flags.
	own []*flag.Flag

	command string
	config  kube.ConfigSource
	// namespaces holds the namespaces that the program watches. None means all.
	namespaces namespaceList
	// installNamespace is the namespace that the permissions are for.
	installNamespace string
	// At most one of listen and listenSecure is set. Without either there is no listener.
	listen, listenSecure string
	// tlsCert and tlsKey are the files of the certificate of listenSecure. They are set both or not
	// at all.
	tlsCert, tlsKey string
	leaderElect     bool
	// timing holds the times of the leader election. It is zero for lease.DefaultTiming.
	timing      lease.Timing
	verbose     bool
	showVersion bool

	// install, manifests and uninstall are the flags of the commands manifests and uninstall.
	install   installFlags
	manifests manifestFlags
	uninstall uninstallFlags
}

// newCommandLine returns a command line with the program's own flags.
func (p program) newCommandLine() (*commandLine, error) {
	line := &commandLine{name: p.name, flags: flag.NewFlagSet(p.name, flag.ContinueOnError)}
	if p.Flags != nil {
		p.Flags(line.flags)
	}
	line.flags.Init(p.name, flag.ContinueOnError)
	line.flags.SetOutput(io.Discard)
	line.flags.Usage = nil
	line.flags.VisitAll(func(f *flag.Flag) { line.own = append(line.own, f) })
	builtIn := &commandLine{flags: flag.NewFlagSet("", flag.ContinueOnError)}
	builtIn.addRunFlags()
	builtIn.addPermissionFlags()
	builtIn.addVersionFlag()
	var errs []error
	for _, f := range line.own {
		if builtIn.flags.Lookup(f.Name) != nil || f.Name == "help" || f.Name == "h" {
			errs = append(errs, fmt.Errorf("the flag --%s is built in: give the flag of the program another name", f.Name))
		}
	}
	return line, errors.Join(errs...)
}

// addRunFlags adds the built-in flags of the command run.
func (l *commandLine) addRunFlags() {
	l.flags.StringVar(&l.config.Kubeconfig, "kubeconfig", "", "")
	l.flags.StringVar(&l.config.Context, "context", "", "")
	l.flags.Var(&l.namespaces, "watch-namespace", "")
	l.flags.Func("listen", "", addressInto(&l.listen))
	l.flags.Func("listen-secure", "", addressInto(&l.listenSecure))
	l.flags.StringVar(&l.tlsCert, "tls-cert", "", "")
	l.flags.StringVar(&l.tlsKey, "tls-key", "", "")
	l.flags.BoolVar(&l.leaderElect, "leader-elect", false, "")
	l.flags.Func("lease-duration", "", func(text string) error {
		d, err := time.ParseDuration(text)
		if err == nil {
			l.timing, err = lease.TimingOf(d)
		}
		return err
	})
	l.flags.BoolVar(&l.verbose, "v", false, "")
}

// addPermissionFlags adds the flags that only the command permissions has.
func (l *commandLine) addPermissionFlags() {
	l.flags.Func("namespace", "", func(name string) error {
		l.installNamespace = name
		return checkNamespace(name)
	})
}

// addVersionFlag adds the flag that every command has.
func (l *commandLine) addVersionFlag() { l.flags.BoolVar(&l.showVersion, "version", false, "") }

// parse sets l to the command and the options in args.
func (l *commandLine) parse(args []string) error {
	l.command = "run"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		l.command, args = args[0], args[1:]
	}
	// after holds the flags that may stand after --, if the command has such flags.
	flags, after := l.flags, (*flag.FlagSet)(nil)
	switch l.command {
	case "run":
		l.addRunFlags()
	case "permissions":
		l.addRunFlags() // of the program that needs the permissions
		l.addPermissionFlags()
	case "crd", "version":
	case "manifests":
		flags, after = l.newManifestFlags()
	case "uninstall":
		flags, after = l.newUninstallFlags()
	case "help":
		return nil
	default:
		return fmt.Errorf("unknown command %q: there are run, crd, permissions, manifests, uninstall and version", l.command)
	}
	flags.BoolVar(&l.showVersion, "version", false, "")
	switch err := l.parseFlags(flags, after, args); {
	case errors.Is(err, flag.ErrHelp):
		l.command = "help"
		return nil
	case err != nil:
		return err
	}
	if l.showVersion {
		l.command = "version"
	}
	return l.checkTogether()
}

// checkTogether returns what is wrong with flags that are valid each by itself.
func (l *commandLine) checkTogether() error {
	switch {
	case l.listen != "" && l.listenSecure != "":
		return errors.New("give one of --listen and --listen-secure: both serve the same pages")
	case (l.tlsCert == "") != (l.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both, or none for a self-signed certificate")
	case l.tlsCert != "" && l.listenSecure == "":
		return errors.New("--tls-cert and --tls-key are for --listen-secure: give it an address, such as :8443")
	case l.timing.Duration > 0 && !l.leaderElect && l.command == "run":
		return errors.New("--lease-duration is for --leader-elect: give both")
	}
	return nil
}

// parseFlags sets the values of flags by args. The flags of after may stand after --.
func (l *commandLine) parseFlags(flags, after *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	rest := flags.Args()
	if after != nil && len(rest) > 0 && args[len(args)-len(rest)-1] == "--" {
		if err := after.Parse(rest); err != nil {
			return err
		}
		rest = after.Args()
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s takes no argument %q", l.command, rest[0])
	}
	return nil
}

// shareFlags adds the flags of run to flags of another command, except flags whose names are taken,
// and returns all flags of run. If args is not nil, it receives the flags that the command line
// gives, except the flags that only this process can use.
func (l *commandLine) shareFlags(flags *flag.FlagSet, args *[]string) (after *flag.FlagSet) {
	after = flag.NewFlagSet(l.name, flag.ContinueOnError)
	for _, set := range []*flag.FlagSet{flags, after} {
		set.SetOutput(io.Discard)
		set.Usage = func() {}
	}
	l.addRunFlags()
	l.flags.VisitAll(func(f *flag.Flag) {
		value := f.Value
		if args != nil && f.Name != "kubeconfig" && f.Name != "context" {
			value = recordedValue{value, f.Name, args}
		}
		after.Var(value, f.Name, f.Usage)
		if flags.Lookup(f.Name) == nil {
			flags.Var(value, f.Name, f.Usage)
		}
	})
	return after
}

// recordedValue is the value of a flag that also records how the flag is given.
type recordedValue struct {
	flag.Value
	name string
	args *[]string
}

// Set sets the value: see [flag.Value].
func (v recordedValue) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	*v.args = append(*v.args, "--"+v.name+"="+text)
	return nil
}

// IsBoolFlag reports whether the flag may stand without a value: see [flag.Value].
func (v recordedValue) IsBoolFlag() bool {
	b, ok := v.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// namespaceList is the value of a flag that may be repeated.
type namespaceList []string

func (l *namespaceList) String() string { return strings.Join(*l, ",") }

func (l *namespaceList) Set(name string) error {
	*l = append(*l, name)
	return checkNamespace(name)
}

// checkNamespace returns an error unless name is valid as the name of a namespace.
func checkNamespace(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("the name of a namespace is not valid: %s", problems[0])
	}
	return nil
}

// addressInto returns a function that sets into to an address to listen on, and checks its form.
func addressInto(into *string) func(address string) error {
	return func(address string) error {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("the address is not valid: write it as :8080 or 127.0.0.1:8080 (%w)", err)
		}
		*into = address
		return nil
	}
}

// help prints how to call the program.
func (p program) help(line *commandLine) {
	kinds := ""
	parts, needs, err := p.makeParts()
	if err == nil && len(needs.Defines) > 0 {
		var names []string
		for _, t := range needs.Defines {
			names = append(names, fmt.Sprintf("%s (%s, %s)", t.Resource.Kind, t.Resource, t.Resource.Version))
		}
		kinds = " for " + strings.Join(names, ", ")
	}
	indent := strings.Repeat(" ", len(p.name)+2) + "                "
	fmt.Fprintf(p.stdout, `%[1]s is a Kubernetes operator%[2]s.

Usage:
  %[1]s [run] [flags]   run until a signal
  %[1]s crd             print its CustomResourceDefinitions; to apply them:
  %[3]s
  %[1]s permissions     print the Roles and the ClusterRole that it needs; takes the flags of run,
  %[5]s                 and --namespace NAME, in which it is installed (default: %[6]s)
  %[1]s manifests       print what installs it in a cluster; to apply it:
  %[4]s
  %[1]s uninstall       remove it from a cluster
  %[1]s version         print its version; also --version

Flags of run:
  --kubeconfig FILE   how to reach the cluster. Default: the files in the environment
                      variable KUBECONFIG, else ~/.kube/config, else, in a Pod, its
                      ServiceAccount
  --context NAME      the context of the kubeconfig. Default: its current one
  --watch-namespace NAME
                      work in this namespace only; may be repeated. Default: all
  --listen ADDRESS    serve /healthz, /readyz and /metrics there, over HTTP; such as :8080.
                      Default: nowhere
%[7]s  --leader-elect      work only while this replica leads, by a Lease in its namespace;
                      for programs that run more than once. Default: work at once
  --lease-duration D  how soon another replica follows a leader that crashed. The other times of
                      the Lease are in proportion. Default: 15s
  -v                  log more

`+manifestsHelp+uninstallHelp, p.name, kinds, indent+ownCommand(p.name)+" crd | kubectl apply -f -",
		indent+ownCommand(p.name)+" manifests --image IMAGE | kubectl apply --server-side -f -",
		strings.Repeat(" ", len(p.name)), installNamespaceOf(p.name), secureHelpOf(parts))
	if len(line.own) == 0 {
		return
	}
	fmt.Fprint(p.stdout, "\nFlags of this program, for run, crd, permissions, manifests and uninstall:\n")
	for _, f := range line.own {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(p.stdout, "  %s\n", strings.TrimSpace("--"+f.Name+" "+value))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		if usage != "" {
			fmt.Fprintf(p.stdout, "                      %s\n", strings.ReplaceAll(usage, "\n", "\n                      "))
		}
	}
}

// secureHelpOf returns the help for the flags of [SecureListener], if that part is among parts.
func secureHelpOf(parts []Part) string {
	if _, err := secureOpenerIn(parts); err != nil {
		return ""
	}
	return `  --listen-secure ADDRESS
                      serve them there over TLS instead, such as on :8443. All but /healthz and
                      /readyz need the bearer token of somebody who may get them by RBAC
  --tls-cert FILE, --tls-key FILE
                      the certificate for --listen-secure and its key, which are read again when
                      they change. Default: a self-signed one, which is renewed
`
}

// programName returns the name of the executable.
func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// ownCommand returns how to call this program: its name or, because nobody finds the executables
// that go run makes, go run and its package.
func ownCommand(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") && info.Path != "" && info.Path != "command-line-arguments" {
		return "go run " + info.Path
	}
	return name
}
