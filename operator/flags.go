package operator

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/definitions"
)

// options holds the values of the built-in flags.
type options struct {
	config kube.ConfigSource
	// namespaces holds the namespaces that the program watches. None means all.
	namespaces []string
	listen     listenFlags
	election   electionFlags
	verbosity  *logctx.Verbosity
	// isVersion is true if the user asks for the version by --version.
	isVersion bool
	// isConfirmed and isDryRun are for the commands that change a cluster.
	isConfirmed, isDryRun bool
	// definitionFolder is where the command crd writes its files. It is empty for the standard output.
	definitionFolder string
	// comparison is what the command crd compares, if its With is not empty.
	comparison definitions.Comparison

	install   installFlags
	manifests manifestFlags
	uninstall uninstallFlags
}

// electionFlags are the flags of the leader election.
type electionFlags struct {
	isOn bool
	// timing holds the times of the election. It is zero for lease.DefaultTiming.
	timing lease.Timing
	// name and namespace are those of the Lease. They are empty for those of the program.
	name, namespace string
}

// installFlags name an installation, for the commands permissions, manifests and uninstall.
type installFlags struct {
	// namespace and prefix are empty for the defaults, which follow from the name of the program.
	namespace, prefix string
}

// names returns the name of the objects and the namespace of an installation of the program.
func (f installFlags) names(program string) (name, namespace string, err error) {
	name = cmp.Or(f.prefix, program)
	namespace = cmp.Or(f.namespace, installNamespaceOf(name))
	// The Service has the name too.
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return "", "", fmt.Errorf("the name %q is not valid for the objects of the installation: %s: give another name with --name-prefix", name, problems[0])
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return "", "", fmt.Errorf("the name %q is not valid for a namespace: %s: give another name with --namespace", namespace, problems[0])
	}
	if problems := validation.IsValidLabelValue(program); len(problems) > 0 {
		return "", "", fmt.Errorf("the name of the program, %q, is no value of a label, so rename its file: %s", program, problems[0])
	}
	return name, namespace, nil
}

// flagSpec describes a built-in flag.
type flagSpec struct {
	name string
	// argument stands for the value in the help. It is empty for a flag that needs no value.
	argument string
	// value is a *string, *bool, *int, flag.Value or func(string) error that receives the value. The default
	// of the flag is what the variable holds.
	value any
	// commands are the names of the commands that accept the flag, in one text.
	commands string
	help     string
}

// The commands of this package that accept a flag. A command of a feature accepts the flags that the table of names says.
const (
	everyCommand      = "run crd permissions manifests uninstall version"
	runCommands       = "run permissions manifests uninstall"
	clusterCommands   = "run crd permissions manifests uninstall"
	namespaceCommands = "permissions manifests uninstall"
	installCommands   = "manifests uninstall"
	// ownFlagCommands are the commands that have flags of their own. A program can have a flag of the same name: its value
	// stands after --.
	ownFlagCommands = "crd manifests uninstall"
)

// builtInFlags returns all built-in flags of a program of that name. The command line, the help and the check of the
// program's own flags use this table.
func (o *options) builtInFlags(program string) []flagSpec {
	m, u := &o.manifests, &o.uninstall
	return []flagSpec{
		{"kubeconfig", "FILE", &o.config.Kubeconfig, clusterCommands,
			"how to reach the cluster. Default: the files in the environment variable KUBECONFIG, else ~/.kube/config, else, in a Pod, its ServiceAccount"},
		{"context", "NAME", &o.config.Context, clusterCommands, "the context of the kubeconfig. Default: its current one"},
		{"watch-namespace", "NAME", addNamespace(&o.namespaces), runCommands, "work in this namespace only; may be repeated. Default: all"},
		{"listen", "ADDRESS", feature.SetAddress(&o.listen.address), runCommands,
			"serve /healthz, /readyz and /metrics there, over HTTP; such as :8080. Default: nowhere"},
		{"listen-probes", "ADDRESS", feature.SetAddress(&o.listen.probesAddress), runCommands,
			"serve /healthz and /readyz there too, over HTTP; such as :8081, for the kubelet. Default: nowhere"},
		{"leader-elect", "", &o.election.isOn, runCommands,
			"work only while this replica leads, by a Lease in its namespace; for programs that run more than once. Default: work at once"},
		{"lease-duration", "D", o.election.setDuration, runCommands,
			"how soon another replica follows a leader that crashed. The other times of the Lease are in proportion. Default: 30s"},
		{"lease-name", "NAME", feature.SetSubdomain(&o.election.name), runCommands, "the name of that Lease. Default: that of the program"},
		{"lease-namespace", "NAME", feature.SetLabel(&o.election.namespace, "the name of a namespace"), runCommands, "where that Lease is. Default: the namespace of the program"},
		{"v", "", o.verbosity, runCommands, "log more. A level, as in -v=4 of klog, is accepted; each level above 0 logs the same"},
		{"version", "", &o.isVersion, everyCommand, "print the version of the program"},
		{"folder", "FOLDER", feature.SetPath(&o.definitionFolder), "crd",
			"write a file for each definition there instead, for tools that read one definition at a time"},
		{"diff", "FILE", feature.SetPath(&o.comparison.With), "crd",
			"print instead how the definitions differ in meaning from those in FILE, from the standard input (-) or from the cluster (cluster). The status is 1 if they differ"},
		{"descriptions", "", &o.comparison.WithDescriptions, "crd", "compare the descriptions too"},
		{"namespace", "NAME", feature.SetLabel(&o.install.namespace, "the name of a namespace"), namespaceCommands,
			"where the program is installed (default: " + installNamespaceOf(program) + ")"},
		{"name-prefix", "NAME", feature.SetLabel(&o.install.prefix, "the name"), installCommands, "the name of the objects. Default: that of the program"},
		{"image", "IMAGE", &m.Image, "manifests", "the image of the program, best with its digest"},
		{"replicas", "N", &m.Replicas, "manifests", "how many run at a time; one of them leads"},
		{"memory-limit", "SIZE", &m.MemoryLimit, "manifests", "such as 256Mi. Default: none"},
		{"cpu-limit", "AMOUNT", &m.CPULimit, "manifests", "such as 500m. Default: none"},
		{"memory-request", "SIZE", &m.MemoryRequest, "manifests", "such as 128Mi. Default: 64Mi"},
		{"cpu-request", "AMOUNT", &m.CPURequest, "manifests", "such as 100m. Default: 50m"},
		{"priority-class", "NAME", &m.PriorityClass, "manifests", "the priority class of the Pods. Default: that of the cluster"},
		{"service-account-annotation", "KEY=VALUE", feature.AddAnnotation(&m.AccountAnnotations, "example.com/role=operator"), "manifests", "such as the role of a cloud; may be repeated"},
		{"env", "NAME=VALUE", m.AddEnv, "manifests", "an environment variable of the program; may be repeated"},
		{"env-from", "KIND/NAME", m.AddEnvFrom, "manifests", "all keys of secret/NAME or configmap/NAME as environment variables; may be repeated"},
		{"volume", "SOURCE=PATH", m.AddVolume, "manifests", "such as secret/NAME=/etc/database; also configmap, persistentvolumeclaim, and emptydir without a name; may be repeated"},
		{"node-selector", "LABEL=VALUE", m.AddNodeSelector, "manifests", "a label of the nodes of the Pods; may be repeated"},
		{"toleration", "TAINT", m.AddToleration, "manifests", "such as KEY=VALUE:NoSchedule; may be repeated"},
		{"affinity", "YAML", m.SetAffinity, "manifests", "the affinity of the Pods, such as {podAntiAffinity: {…}}"},
		{"pod-label", "LABEL=VALUE", m.AddPodLabel, "manifests", "a label of the Pods; may be repeated"},
		{"pod-annotation", "KEY=VALUE", feature.AddAnnotation(&m.PodAnnotations, "example.com/team=platform"), "manifests", "an annotation of the Pods; may be repeated"},
		{"run-as-user", "N", m.SetRunAsUser, "manifests", "the user of the container, for an image that has its user by name. Default: that of the image"},
		{"host-network", "", &m.HostNetwork, "manifests", "give the Pods the network of their nodes, for API servers that reach nodes only"},
		{"image-pull-secret", "NAME", (*feature.TextList)(&m.PullSecrets), "manifests", "may be repeated"},
		{"architecture", "NAME", (*feature.TextList)(&m.Architectures), "manifests", "may be repeated. Default: amd64 and arm64"},
		{"network-policy", "", &m.NetworkPolicy, "manifests", "print a NetworkPolicy too"},
		{"network-policy-from", "LABEL=VALUE", m.addPolicyLabel, "manifests", "let only namespaces with this label read the metrics; may be repeated. Default: all"},
		{"service-monitor", "", &m.ServiceMonitor, "manifests", "print a ServiceMonitor too"},
		{"kustomize", "FOLDER", &m.kustomize, "manifests", "write a base there instead"},
		{"helm", "FOLDER", &m.helm, "manifests", "write a chart there instead"},
		{"check", "", &m.check, "manifests", "look first whether the cluster would refuse the definitions of the program, whether its objects would lose anything, and whether something belongs to another installation"},
		{"without-definitions", "", &m.withoutDefinitions, "manifests", "leave the CustomResourceDefinitions out, for a second installation"},
		{"delete-objects", "", &u.deleteObjects, "uninstall", "delete the objects of the program's kinds too, and wait for their cleanups"},
		{"abandon-cleanup", "", &u.abandonCleanup, "uninstall", "do not wait: remove the finalizers of the program"},
		{"remove-finalizers", "", &u.removeFinalizers, "uninstall", "remove the finalizers of the program from the objects that stay, without a cleanup"},
		{"timeout", "D", feature.SetTimeout(&u.timeout), "uninstall", "how long each wait may take. Default: 5m"},
		{"yes", "", &o.isConfirmed, "uninstall", "do not ask"},
		{"dry-run", "", &o.isDryRun, "uninstall", "change nothing"},
	}
}

// inWatchedNamespaces returns c for the namespaces that the program watches.
func (o *options) inWatchedNamespaces(c *kube.Client) *kube.Client {
	if len(o.namespaces) == 0 {
		return c
	}
	return c.InNamespaces(o.namespaces...)
}

// check returns what is wrong with flags of a command that are valid each by itself.
func (o *options) check(command string) error {
	if (o.election != electionFlags{}) && !o.election.isOn && command == "run" {
		return errors.New("--lease-duration, --lease-name and --lease-namespace are for --leader-elect: give it too")
	}
	return nil
}

// isFor reports whether a command accepts the flag.
func (s flagSpec) isFor(command string) bool {
	return slices.Contains(strings.Fields(s.commands), command) ||
		slices.ContainsFunc(feature.Names(), func(n feature.Name) bool {
			return n.IsCommand && n.Name == command && slices.Contains(n.Flags, s.name)
		})
}

// addTo adds the flag to set.
func (s flagSpec) addTo(set *flag.FlagSet) {
	switch value := s.value.(type) {
	case *string:
		set.StringVar(value, s.name, *value, s.help)
	case *bool:
		set.BoolVar(value, s.name, *value, s.help)
	case *int:
		set.IntVar(value, s.name, *value, s.help)
	case flag.Value:
		set.Var(value, s.name, s.help)
	case func(string) error:
		set.Func(s.name, s.help, value)
	}
}

// setDuration sets the times of the election to those of a lease duration, such as 30s.
func (f *electionFlags) setDuration(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil {
		f.timing, err = lease.TimingOf(d)
	}
	return err
}

// access returns the permissions that the election needs in the program of that name.
func (f electionFlags) access(program string) []kube.Access {
	return leaseAccess(cmp.Or(f.name, program), f.namespace)
}

// addNamespace returns a function that adds the name of a namespace to list.
func addNamespace(list *[]string) func(string) error {
	return func(name string) error {
		*list = append(*list, name)
		return feature.CheckLabel("the name of a namespace", name)
	}
}
