package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	manifests.Choices
	kustomize string
	helm      string
	check     bool
	// withoutDefinitions leaves the definitions out of what is printed.
	withoutDefinitions bool
	// webhookEntries prints the webhook configurations with their entries.
	webhookEntries bool
	// webhookSecret is the Secret with the certificate for the webhooks, or empty.
	webhookSecret string
	// webhookAnnotations are those of the webhook configurations.
	webhookAnnotations map[string]string
	// args are the flags of the program that the command line gives, for the Deployment.
	args []string
}

// addPolicyLabel adds a label, such as kubernetes.io/metadata.name=monitoring, to the NetworkPolicy.
func (f *manifestFlags) addPolicyLabel(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
		return errors.New("the label is not valid: write it as kubernetes.io/metadata.name=monitoring")
	}
	if f.PolicyLabels == nil {
		f.PolicyLabels = make(map[string]string)
	}
	f.PolicyLabels[key], f.NetworkPolicy = value, true
	return nil
}

// addAccountAnnotation adds an annotation of the ServiceAccount.
func (f *manifestFlags) addAccountAnnotation(text string) error {
	return addAnnotation(&f.AccountAnnotations, text, "example.com/role=operator")
}

// isAboutWebhooks reports whether a flag is only for programs with webhooks.
func (f *manifestFlags) isAboutWebhooks() bool {
	return f.webhookEntries || f.webhookSecret != "" || len(f.webhookAnnotations) > 0
}

// addWebhookAnnotation adds an annotation of the webhook configurations.
func (f *manifestFlags) addWebhookAnnotation(text string) error {
	return addAnnotation(&f.webhookAnnotations, text, "cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE")
}

// addAnnotation adds an annotation to a map, which it makes if necessary. Its error has the example.
func addAnnotation(annotations *map[string]string, text, example string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || len(validation.IsQualifiedName(key)) > 0 {
		return errors.New("the annotation is not valid: write it as " + example)
	}
	if *annotations == nil {
		*annotations = make(map[string]string)
	}
	(*annotations)[key] = value
	return nil
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

// endMargin is how much longer a Pod has to end than its slowest part. After a controller come the last events
// (4 s), the release of the lease (2 s) and the last requests (1 s).
const endMargin = 12 * time.Second

// manifestPrinter runs the command manifests.
type manifestPrinter struct {
	// program is the name of the program.
	program string
	// out gets the manifests. notes gets lines for the user.
	out, notes io.Writer
	// edit is the field Manifests of [Program]. It may be nil.
	edit func(*Manifests) error
	// flagValues are the values of the flags of the command.
	flagValues manifestFlags
	// canBeSecure is true if the program has the part of [SecureListener].
	canBeSecure bool
	// parts are the parts of the program.
	parts []Part
}

// print prints the objects that install the program, or writes them into files. newClient returns a client of
// the cluster.
func (p manifestPrinter) print(ctx context.Context, o options, needs kube.Needs, newClient func() (*kube.Client, error)) error {
	flags := p.flagValues
	install, err := p.installOptions(o, needs)
	if err != nil {
		return err
	}
	var client *kube.Client
	if flags.check {
		client, err = newClient()
		if err == nil {
			err = errors.Join(manifests.CheckPlurals(ctx, client, install.Definitions),
				manifests.CheckDefinitions(ctx, client, install.Definitions, p.program+" migrate"), p.checkConversions(ctx, client, o, install))
		}
		if err != nil {
			return err
		}
	}
	if flags.Image != "" && isMovingTag(flags.Image) {
		fmt.Fprintf(p.notes, "%s: the image %s may be another one tomorrow: name a version, or best the digest\n", p.program, flags.Image)
	}
	if flags.webhookSecret != "" && len(flags.webhookAnnotations) == 0 {
		fmt.Fprintf(p.notes, "%s: nobody writes the CA of the Secret %s into the webhook configurations: give --webhook-annotation cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE, or set the field caBundle of each entry\n", p.program, flags.webhookSecret)
	}
	if flags.helm != "" { // the names and the namespace of a release are not known
		objects, err := p.objects(manifests.ForHelm(install))
		if err != nil {
			return err
		}
		if client != nil {
			manifests.NoteGrants(objects, ownGroups(needs), p.note)
		}
		return manifests.WriteChart(flags.helm, install, objects)
	}
	objects, err := p.objects(install)
	if err != nil {
		return err
	}
	if client != nil {
		c := manifests.Conflicts{
			Installation: install.Installation, Client: client, Groups: ownGroups(needs), Finalizers: needs.Finalizers, Note: p.note,
		}
		manifests.NoteGrants(objects, c.Groups, p.note)
		err := c.Check(ctx, objects)
		if code, codeErr := webhookCodeIn(p.parts); err == nil && codeErr == nil && !o.webhooks.isOff() {
			err = code.searchWebhookConflicts(ctx, &manifests.WebhookConflicts{
				Name: install.Name, Namespace: install.Namespace, Client: client, Watched: o.namespaces, Note: c.Note,
			}, webhooksOf(p.parts))
		}
		if err != nil {
			return err
		}
	}
	prune := install.SetObjectHashes(objects)
	if flags.kustomize != "" {
		return manifests.WriteBase(flags.kustomize, p.program, objects)
	}
	text, err := manifests.Stream(objects)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "# %s %s, for kubectl apply --server-side -f -\n# This command then deletes what an earlier version printed and this one does not:\n# %s\n"+
		"# To remove the program run %s uninstall: kubectl delete -f would delete the definitions with all objects, and end the program before its cleanups.\n%s",
		p.program, install.Version, prune, p.program, text)
	return err
}

// checkConversions returns an error if the apply of the definitions would make calls fail that need a conversion, or would
// make objects incomplete.
func (p manifestPrinter) checkConversions(ctx context.Context, client *kube.Client, o options, install *manifests.Options) error {
	c, err := conversionsOf(p.parts)
	if err != nil || c == nil {
		return err
	}
	err = c.checkIncomplete(ctx, client, install.Definitions)
	if o.webhooks.isOff() {
		return err
	}
	return errors.Join(err, c.check(ctx, client, install.Definitions, install.Name, install.Namespace, p.program+" manifests --without-definitions"))
}

// note prints a line for the user.
func (p manifestPrinter) note(text string) { fmt.Fprintf(p.notes, "%s: %s\n", p.program, text) }

// objects returns the objects of an installation as the author has changed them, with labels.
func (p manifestPrinter) objects(options *manifests.Options) ([]map[string]any, error) {
	objects, err := manifests.Objects(options)
	if err != nil {
		return nil, err
	}
	if p.edit != nil {
		m := &Manifests{Objects: objects, Namespace: options.Namespace}
		if err := p.edit(m); err != nil {
			return nil, err
		}
		objects = m.Objects
	}
	options.Label(objects)
	return objects, nil
}

// installOptions returns the options of the installation, or everything that is wrong with the options.
func (p manifestPrinter) installOptions(o options, needs kube.Needs) (*manifests.Options, error) {
	flags := p.flagValues
	name, namespace, err := o.install.names(p.program)
	errs := []error{err}
	if flags.helm != "" {
		name, namespace = manifests.HelmRelease, manifests.HelmNamespace
	}
	own := ownDefinitions(needs)
	if flags.withoutDefinitions {
		own = nil
	}
	definitions, err := crd.From(own...)
	errs = append(errs, err)
	if flags.Image == "" && flags.helm == "" {
		errs = append(errs, errors.New("--image is missing: give the image of the program, best with its digest, such as registry.example.com/webapp@sha256:…"))
	}
	if strings.ContainsAny(flags.Image, " \t\n") {
		errs = append(errs, fmt.Errorf("the image %q contains white space", flags.Image))
	}
	if flags.Replicas < 1 {
		errs = append(errs, fmt.Errorf("--replicas is %d: give at least 1", flags.Replicas))
	}
	if flags.MemoryLimit != "" {
		if _, err := manifests.ParseMemory(flags.MemoryLimit); err != nil {
			errs = append(errs, fmt.Errorf("--memory-limit: %w", err))
		}
	}
	if flags.CPULimit != "" && !isCPU(flags.CPULimit) {
		errs = append(errs, fmt.Errorf("--cpu-limit: %q is no amount of processor time: write it as 500m or 2", flags.CPULimit))
	}
	if flags.kustomize != "" && flags.helm != "" {
		errs = append(errs, errors.New("--kustomize and --helm exclude each other: run the command twice"))
	}
	if len(flags.Architectures) == 0 {
		flags.Architectures = []string{"amd64", "arm64"}
	}
	args := []string{"run"}
	if !hasFlag(flags.args, "leader-elect") {
		args, o.election.isOn = append(args, "--leader-elect"), true
	}
	// Reviews of tokens need a ClusterRole, which a program for some namespaces has not.
	if o.listen.address == "" && o.listen.secureAddress == "" && p.canBeSecure && len(o.namespaces) == 0 {
		args, o.listen.secureAddress = append(args, "--listen-secure=:8443"), ":8443"
		needs.Access = append(slices.Clone(needs.Access), secureMetricsAccess()...)
	}
	port, err := podPort("--listen, or --listen-secure,", cmp.Or(o.listen.address, o.listen.secureAddress))
	errs = append(errs, err)
	if o.listen.probesAddress == "" {
		o.listen.probesAddress = ":8081"
		if port == 8081 {
			o.listen.probesAddress = ":8082"
		}
		args = append(args, "--listen-probes="+o.listen.probesAddress)
	}
	probesPort, err := podPort("--listen-probes", o.listen.probesAddress)
	errs = append(errs, err)
	var plan webhookPlan
	if code, err := webhookCodeIn(p.parts); err == nil {
		plan, err = code.planWebhooks(webhookPlanner{p.program, name, namespace, p.parts, &o, port, probesPort, needs.ShutdownTime})
		errs = append(errs, err)
	}
	args = append(args, plan.args...)
	needs.Access = append(slices.Clone(needs.Access), plan.access...)
	if flags.TLSSecret != "" {
		args = append(args, "--tls-cert="+manifests.TLSFolder+"/tls.crt", "--tls-key="+manifests.TLSFolder+"/tls.key")
	}
	isSecure := o.listen.secureAddress != ""
	switch {
	case o.listen.isLivePageOn && !isSecure:
		errs = append(errs, errors.New("--live-page in a cluster needs --listen-secure: give it an address, such as :8443"))
	case flags.TLSSecret != "" && !isSecure:
		errs = append(errs, errors.New("--tls-secret is for --listen-secure: give it an address, such as :8443"))
	case flags.TLSSecret != "" && o.listen.tlsCert != "":
		errs = append(errs, errors.New("--tls-secret and --tls-cert exclude each other: both name the certificate"))
	case flags.ServiceMonitor && port == 0:
		errs = append(errs, errors.New("--service-monitor needs a program that serves metrics: give --listen, such as --listen :8080, or --listen-secure"))
	case flags.ServiceMonitor && isSecure && flags.TLSSecret == "":
		errs = append(errs, errors.New("--service-monitor with --listen-secure needs --tls-secret: Prometheus would show its token to whoever answers, because it cannot verify a self-signed certificate"))
	}
	args = append(args, flags.args...)
	if o.election.isOn {
		needs.Access = append(slices.Clone(needs.Access), o.election.access(p.program)...)
	}
	var roles []any
	for _, r := range rolesOf(access.For(needs, o.namespaces), name, namespace) {
		roles = append(roles, r)
	}
	return &manifests.Options{
		Installation: manifests.Installation{Program: p.program, Name: name, Namespace: namespace, ManagedBy: manifests.ManagedBy},
		Choices:      flags.Choices, Version: programVersion(), OwnNamespace: o.install.namespace == "",
		Args: args, Port: port, IsSecure: isSecure, ProbesPort: probesPort,
		GraceSeconds: int(max(30*time.Second, needs.ShutdownTime+endMargin, plan.endTime).Round(time.Second) / time.Second),
		Definitions:  definitions, Roles: roles, AddWebhooks: plan.addTo,
	}, errors.Join(errs...)
}

// isCPU reports whether text is an amount of processor time, such as 500m or 2.
func isCPU(text string) bool {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "m"), 10, 32)
	return err == nil && n > 0
}

// isMovingTag reports whether an image may be another one tomorrow: it has the tag latest, or neither tag nor digest.
func isMovingTag(image string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	return strings.HasSuffix(name, ":latest") || !strings.ContainsAny(name, ":@")
}

// hasFlag reports whether args give a flag.
func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=")
	})
}

// podPort returns the port of an address to listen on in a Pod. It returns 0 if the address is empty. Its error names the
// flags that give the address.
func podPort(flags, address string) (int, error) {
	if address == "" {
		return 0, nil
	}
	host, text, err := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	if ip := net.ParseIP(host); err != nil || port < 1 || port > 65535 || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return 0, fmt.Errorf("nothing outside of its Pod reaches a program that listens on %q: give %s the number of a port, such as :8080", address, flags)
	}
	return port, nil
}
