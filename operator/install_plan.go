package operator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// endMargin is how much longer a Pod has to end than its slowest part. After a controller come the last events
// (4 s), the last look at retained Roles (2 s), the release of the lease (2 s) and the last requests (1 s).
const endMargin = 12 * time.Second

// installPlan is what a program has in its Deployment. It follows from the flags of the command manifests and from
// those of the program. [installPlan.complete] adds the defaults of an installation to both.
type installPlan struct {
	program  string
	parts    []Part
	features features
	// options are those of the command line. complete changes them to the options of the program that the Deployment runs.
	options options
	// needs are those of the parts, and of what the program serves.
	needs kube.Needs
	// name and namespace are those of the objects of the installation.
	name, namespace string
	// args are the arguments of the Deployment.
	args []string
	// port is where the program serves its metrics, or 0, and probesPort is where it serves its health.
	port, probesPort int
	// brought is what the features add.
	brought feature.Plan
	// errs are what is wrong with the flags.
	errs []error
}

// complete adds the defaults of an installation to the plan. It returns what the objects of the installation are made
// of, or everything that is wrong with the flags. It is called once.
func (p *installPlan) complete() (*manifests.Options, error) {
	p.setNames()
	definitions := p.makeDefinitions()
	p.checkPod()
	if len(p.options.manifests.Architectures) == 0 {
		p.options.manifests.Architectures = []string{"amd64", "arm64"}
	}
	p.addElection()
	p.addProbes()
	p.addFeatures()
	p.checkHostNetwork()
	p.args = append(p.args, p.options.manifests.args...)
	p.needs.Rules = append(slices.Clone(p.needs.Rules),
		retentionRules(p.parts, p.options.namespaces, p.name, p.namespace)...)
	if p.options.election.isOn {
		p.addAccess(p.options.election.access(p.program))
	}
	return &manifests.Options{
		Installation: manifests.Installation{
			Program: p.program, Name: p.name, Namespace: p.namespace, ManagedBy: manifests.ManagedBy,
		},
		Choices: p.options.manifests.Choices, Version: programVersion(), OwnNamespace: p.options.install.namespace == "",
		Args: p.args, Port: p.port, HasTLS: p.features.program.Pages.IsChecked,
		ProbesPort: p.probesPort, GraceSeconds: p.graceSeconds(),
		Definitions: definitions, Roles: p.roles(), IsCalled: p.brought.IsCalled, Edits: p.brought.Edits,
	}, errors.Join(p.errs...)
}

// recordError records what is wrong with a flag, unless err is nil.
func (p *installPlan) recordError(err error) {
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

// setNames sets the name and the namespace.
func (p *installPlan) setNames() {
	var err error
	p.name, p.namespace, err = p.options.install.names(p.program)
	p.recordError(err)
	if p.options.manifests.helm != "" {
		p.name, p.namespace = manifests.HelmRelease, manifests.HelmNamespace
	}
}

// makeDefinitions makes the CustomResourceDefinitions of the installation.
func (p *installPlan) makeDefinitions() []*crd.CustomResourceDefinition {
	own := ownDefinitions(p.needs)
	if p.options.manifests.withoutDefinitions {
		own = nil
	}
	definitions, err := crd.From(own...)
	p.recordError(err)
	return definitions
}

// checkPod checks the flags about the Pod of the program, and about the format of what is printed.
func (p *installPlan) checkPod() {
	if p.options.manifests.Image == "" && p.options.manifests.helm == "" {
		p.recordError(errors.New("--image is missing: give the image of the program, best with its digest, such as registry.example.com/webapp@sha256:…"))
	}
	if strings.ContainsAny(p.options.manifests.Image, " \t\n") {
		p.recordError(fmt.Errorf("the image %q contains white space", p.options.manifests.Image))
	}
	if p.options.manifests.Replicas < 1 {
		p.recordError(fmt.Errorf("--replicas is %d: give at least 1", p.options.manifests.Replicas))
	}
	p.checkAmounts()
	if p.options.manifests.kustomize != "" && p.options.manifests.helm != "" {
		p.recordError(errors.New("--kustomize and --helm exclude each other: run the command twice"))
	}
}

// checkAmounts checks the limits and the requests of the container.
func (p *installPlan) checkAmounts() {
	m := &p.options.manifests
	for _, each := range [][2]string{{"--memory-limit", m.MemoryLimit}, {"--memory-request", m.MemoryRequest}} {
		if _, err := manifests.ParseMemory(each[1]); each[1] != "" && err != nil {
			p.recordError(fmt.Errorf("%s: %w", each[0], err))
		}
	}
	for _, each := range [][2]string{{"--cpu-limit", m.CPULimit}, {"--cpu-request", m.CPURequest}} {
		if each[1] != "" && !isCPU(each[1]) {
			p.recordError(fmt.Errorf("%s: %q is no amount of processor time: write it as 500m or 2", each[0], each[1]))
		}
	}
}

// checkHostNetwork checks the flags of a program in the network of its nodes, where everybody who reaches a node reaches
// the program.
func (p *installPlan) checkHostNetwork() {
	m, pages := &p.options.manifests, p.features.program.Pages
	if !m.HostNetwork {
		return
	}
	if pages.Address != "" && !pages.IsChecked {
		p.recordError(errors.New("--host-network would show the pages of --listen to everybody who reaches the node: give --listen-secure in place of --listen"))
	}
	if m.NetworkPolicy {
		p.recordError(errors.New("--host-network and --network-policy exclude each other: no NetworkPolicy holds for the network of the nodes"))
	}
	if p.options.install.namespace != "" {
		p.brought.Notes = append(p.brought.Notes, "the namespace "+p.namespace+
			" must allow the Pod Security Standard privileged, because the Pods have the network of their nodes")
	}
}

// addElection adds the leader election, unless a flag decides about the election.
func (p *installPlan) addElection() {
	if !hasFlag(p.options.manifests.args, "leader-elect") {
		p.args, p.options.election.isOn = append(p.args, "--leader-elect"), true
	}
}

// addProbes adds the address of the health, unless a flag gives the address.
func (p *installPlan) addProbes() {
	listen := &p.options.listen
	if listen.probesAddress == "" {
		listen.probesAddress = ":8081"
		if port, _ := feature.PodPort("", p.features.program.Pages.Address); port == 8081 { // addFeatures reports the error
			listen.probesAddress = ":8082"
		}
		p.args = append(p.args, "--listen-probes="+listen.probesAddress)
	}
	var err error
	p.probesPort, err = feature.PodPort("--listen-probes", listen.probesAddress)
	p.recordError(err)
}

// addFeatures adds what the features need, and finds the port of the pages.
func (p *installPlan) addFeatures() {
	p.brought = feature.Plan{
		Name: p.name, Namespace: p.namespace, HasServiceMonitor: p.options.manifests.ServiceMonitor,
		ProbesPort: p.probesPort, EndTime: p.needs.ShutdownTime + endMargin,
	}
	p.recordError(p.features.install(&p.brought))
	p.args, p.options.manifests.TLSSecret = append(p.args, p.brought.Args...), p.brought.TLSSecret
	p.addAccess(p.brought.Access)
	pages := p.features.program.Pages
	var err error
	p.port, err = feature.PodPort(pages.Flag, pages.Address)
	p.recordError(err)
	if p.options.manifests.ServiceMonitor && pages.Address == "" {
		p.recordError(errors.New(
			"--service-monitor needs a program that serves metrics: give --listen, such as --listen :8080"))
	}
}

// addAccess adds permissions.
func (p *installPlan) addAccess(access []kube.Access) {
	p.needs.Access = append(slices.Clone(p.needs.Access), access...)
}

// roles returns the roles of the program.
func (p *installPlan) roles() (roles []any) {
	for _, r := range rolesOf(access.For(p.needs, p.options.namespaces), p.name, p.namespace) {
		roles = append(roles, r)
	}
	return roles
}

// graceSeconds returns how long a Pod has to end, in seconds.
func (p *installPlan) graceSeconds() int {
	return int(max(30*time.Second, p.brought.EndTime).Round(time.Second) / time.Second)
}

// isCPU reports whether text is an amount of processor time, such as 500m or 2.
func isCPU(text string) bool {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "m"), 10, 32)
	return err == nil && n > 0
}

// hasFlag reports whether args give a flag.
func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=")
	})
}
