package operator

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// manifestFlags are the flags of the command manifests.
type manifestFlags struct {
	image         string
	pullSecrets   textList
	replicas      int
	memoryLimit   string
	architectures textList
	networkPolicy bool
	monitor       bool
	kustomize     string
	helm          string
	check         bool
	// args are the flags of the program that the command line gives, for the Deployment.
	args []string
}

const manifestsHelp = `Flags of manifests, which passes the flags of run on to the program in the cluster:
  --image IMAGE       the image of the program, best with its digest
  --namespace NAME    where to install it. Default: the name of the program and -system
  --name-prefix NAME  the name of the objects. Default: that of the program
  --replicas N        how many run at a time; one of them leads. Default: 2
  --memory-limit SIZE such as 256Mi. Default: none
  --image-pull-secret NAME, --architecture NAME (default: amd64 and arm64)
                      may be repeated
  --network-policy, --service-monitor
                      print such an object too
  --kustomize FOLDER, --helm FOLDER
                      write a base or a chart there instead
  --check             look first whether the cluster has objects in a version that the
                      program does not define any more
`

// installFlags name an installation, for the commands manifests and uninstall.
type installFlags struct {
	// namespace and prefix are empty for the defaults, which follow from the name of the program.
	namespace, prefix string
}

func (f *installFlags) addTo(flags *flag.FlagSet) {
	flags.Func("namespace", "", setLabel(&f.namespace))
	flags.Func("name-prefix", "", setLabel(&f.prefix))
}

// names returns the name of the objects and the namespace of an installation of the program.
func (f installFlags) names(program string) (name, namespace string, err error) {
	name = cmp.Or(f.prefix, program)
	namespace = cmp.Or(f.namespace, installNamespaceOf(name))
	// The Service has the name too.
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return "", "", fmt.Errorf("%q is no name for all objects, so give another one with --name-prefix: %s", name, problems[0])
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return "", "", fmt.Errorf("%q is no name of a namespace, so give another one with --namespace: %s", namespace, problems[0])
	}
	if problems := validation.IsValidLabelValue(program); len(problems) > 0 {
		return "", "", fmt.Errorf("the name of the program, %q, is no value of a label, so rename its file: %s", program, problems[0])
	}
	return name, namespace, nil
}

// setLabel returns a function that sets value to the name of an object.
func setLabel(value *string) func(string) error {
	return func(name string) error {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("the name is not valid: %s", problems[0])
		}
		*value = name
		return nil
	}
}

// textList is the value of a flag that may be repeated.
type textList []string

func (l *textList) String() string { return strings.Join(*l, ",") }

func (l *textList) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	*l = append(*l, text)
	return nil
}

// newManifestFlags returns the flags of the command manifests, and the flags that may stand after --.
func (l *commandLine) newManifestFlags() (flags, after *flag.FlagSet) {
	flags = flag.NewFlagSet(l.name, flag.ContinueOnError)
	m := &l.manifests
	l.install.addTo(flags)
	flags.StringVar(&m.image, "image", "", "")
	flags.Var(&m.pullSecrets, "image-pull-secret", "")
	flags.IntVar(&m.replicas, "replicas", 2, "")
	flags.StringVar(&m.memoryLimit, "memory-limit", "", "")
	flags.Var(&m.architectures, "architecture", "")
	flags.BoolVar(&m.networkPolicy, "network-policy", false, "")
	flags.BoolVar(&m.monitor, "service-monitor", false, "")
	flags.StringVar(&m.kustomize, "kustomize", "", "")
	flags.StringVar(&m.helm, "helm", "", "")
	flags.BoolVar(&m.check, "check", false, "")
	return flags, l.shareFlags(flags, &m.args)
}

// endMargin is how much longer a Pod has to end than its slowest part: a controller is followed by
// the last events (4 s), the release of the lease and the last requests (1 s).
const endMargin = 12 * time.Second

// printManifests prints the objects that install the program, or writes them into files.
func (p program) printManifests(ctx context.Context, line *commandLine, needs kube.Needs) error {
	flags := line.manifests
	options, err := p.manifestOptions(line, needs)
	if err != nil {
		return err
	}
	if flags.check {
		client, err := p.newAdminClient(line)
		if err == nil {
			err = manifests.CheckStoredVersions(ctx, client, options.Definitions)
		}
		if err != nil {
			return err
		}
	}
	if flags.helm != "" {
		objects, err := p.objects(options.ForHelm())
		if err != nil {
			return err
		}
		return options.WriteChart(flags.helm, objects)
	}
	objects, err := p.objects(options)
	if err != nil {
		return err
	}
	if flags.kustomize != "" {
		return options.WriteBase(flags.kustomize, objects)
	}
	prune, err := options.SetRevision(objects)
	if err != nil {
		return err
	}
	text, err := manifests.Stream(objects)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "# %s %s, for kubectl apply --server-side -f -\n# This command then deletes what an earlier version printed and this one does not:\n# %s\n%s",
		p.name, options.Version, prune, text)
	return err
}

// objects returns the objects of an installation as the author has changed them, with labels.
func (p program) objects(options *manifests.Options) ([]map[string]any, error) {
	objects, err := manifests.Objects(options)
	if err != nil {
		return nil, err
	}
	if p.Manifests != nil {
		m := &Manifests{Objects: objects, Namespace: options.Namespace}
		if err := p.Manifests(m); err != nil {
			return nil, err
		}
		objects = m.Objects
	}
	options.Label(objects)
	return objects, nil
}

// manifestOptions returns the options that the command line gives, or everything that is wrong with
// them.
func (p program) manifestOptions(line *commandLine, needs kube.Needs) (*manifests.Options, error) {
	flags := line.manifests
	name, namespace, err := line.install.names(p.name)
	errs := []error{err}
	own := ownDefinitions(needs)
	definitions, err := crd.From(own...)
	errs = append(errs, err)
	if flags.image == "" && flags.helm == "" {
		errs = append(errs, errors.New("--image is missing: give the image of the program, best with its digest, such as registry.example.com/webapp@sha256:…"))
	}
	if strings.ContainsAny(flags.image, " \t\n") {
		errs = append(errs, fmt.Errorf("the image %q contains white space", flags.image))
	}
	if flags.replicas < 1 {
		errs = append(errs, fmt.Errorf("--replicas is %d: give at least 1", flags.replicas))
	}
	if flags.memoryLimit != "" {
		if _, err := manifests.ParseMemory(flags.memoryLimit); err != nil {
			errs = append(errs, fmt.Errorf("--memory-limit: %w", err))
		}
	}
	if flags.kustomize != "" && flags.helm != "" {
		errs = append(errs, errors.New("--kustomize and --helm exclude each other: run the command twice"))
	}
	if len(flags.architectures) == 0 {
		flags.architectures = textList{"amd64", "arm64"}
	}
	args := []string{"run"}
	election := line.flags.Lookup("leader-elect")
	if election != nil && !hasFlag(flags.args, election.Name) {
		args = append(args, "--leader-elect")
	}
	if line.listen == "" && line.listenSecure == "" {
		args, line.listen = append(args, "--listen=:8080"), ":8080"
	}
	args = append(args, flags.args...)
	port, err := portOf(cmp.Or(line.listen, line.listenSecure))
	errs = append(errs, err)
	if election != nil && (!hasFlag(flags.args, election.Name) || election.Value.String() == "true") {
		needs.Access = append(slices.Clone(needs.Access), leaseAccess(p.name)...)
	}
	if flags.helm != "" {
		name, namespace = manifests.HelmRelease, manifests.HelmNamespace
	}
	var roles []any
	for _, r := range rolesOf(access.For(needs, line.namespaces), name, namespace) {
		roles = append(roles, r)
	}
	return &manifests.Options{
		Program: p.name, Version: programVersion(), Name: name, Namespace: namespace,
		OwnNamespace: line.install.namespace == "", ManagedBy: manifests.ManagedBy,
		Image: flags.image, PullSecrets: flags.pullSecrets, Replicas: flags.replicas, MemoryLimit: flags.memoryLimit,
		Architectures: flags.architectures, Args: args, Port: port, IsSecure: line.listenSecure != "",
		GraceSeconds:  int(max(30*time.Second, needs.ShutdownTime+endMargin).Round(time.Second) / time.Second),
		NetworkPolicy: flags.networkPolicy, ServiceMonitor: flags.monitor,
		Definitions: definitions, Roles: roles,
	}, errors.Join(errs...)
}

// hasFlag reports whether args give a flag.
func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=")
	})
}

// portOf returns the port of an address to listen on in a Pod.
func portOf(address string) (int, error) {
	host, text, err := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	if ip := net.ParseIP(host); err != nil || port < 1 || port > 65535 || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return 0, fmt.Errorf("the kubelet and Prometheus cannot reach a program that listens on %q: give --listen, or --listen-secure, the number of a port, such as :8080", address)
	}
	return port, nil
}
