package calls

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
)

const (
	// drainTime is how long a Pod accepts calls after the signal to end. Meanwhile its parts end.
	drainTime = 15 * time.Second
	// reachTime is how long a Pod may be unknown to API servers after its start: until the next probe of its
	// readiness, after five seconds at most, and until kube-proxy knows that it is ready.
	reachTime = 10 * time.Second
	// callTime is how long an API server waits for the answer to its last call.
	callTime = 10 * time.Second
	// minEndTime is the least time that a Pod with webhooks has to end.
	minEndTime = 45 * time.Second
)

// planner adds what API servers need to call the program to the plan of an installation.
type planner struct {
	*calls
	plan *feature.Plan
	// pagesPort is the port of the metrics, or 0.
	pagesPort int
}

// install does the work of [calls.Install], with flags that are not off.
func (p *planner) install() error {
	port, err := feature.PodPort("--webhooks", p.flags.address)
	if err != nil {
		return err
	}
	used := []int{p.pagesPort, p.plan.ProbesPort}
	if p.flags.port != 0 {
		port = p.flags.port
		p.plan.Args = append(p.plan.Args, "--webhooks=:"+strconv.Itoa(port))
	}
	if port == 0 {
		for port = 9443; slices.Contains(used, port); port++ {
		}
		p.plan.Args = append(p.plan.Args, "--webhooks=:"+strconv.Itoa(port))
	}
	if slices.Contains(used, port) {
		return fmt.Errorf("--webhooks has the port %d, which the program uses otherwise: give --webhooks another port", port)
	}
	if p.flags.service == "" && p.plan.Name != p.program.Name {
		p.plan.Args = append(p.plan.Args, "--webhook-service="+p.plan.Name)
	}
	if p.flags.secret != "" {
		p.plan.Args = append(p.plan.Args, "--webhook-cert="+folder+"/tls.crt", "--webhook-key="+folder+"/tls.key")
	}
	if p.flags.isIssuing() {
		p.plan.Access = append(p.plan.Access, p.access(p.plan.Name, p.plan.Namespace)...)
	}
	if p.flags.secret != "" && len(p.flags.annotations) == 0 {
		p.plan.Notes = append(p.plan.Notes, "nobody writes the CA of the Secret "+p.flags.secret+
			" into the webhook configurations: give --webhook-annotation cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE, "+
			"or set the field caBundle of each entry")
	}
	configurations, err := p.configurations()
	if err != nil {
		return err
	}
	p.plan.IsCalled = true
	p.plan.EndTime = max(p.plan.EndTime+callTime, minEndTime)
	o := &objects{
		name: p.plan.Name, namespace: p.plan.Namespace, port: port, secret: p.flags.secret,
		isIssuing: p.flags.isIssuing(), configurations: configurations, annotations: p.flags.annotations,
	}
	p.plan.Edits = append(p.plan.Edits, func(all []manifests.Object) ([]manifests.Object, error) {
		for _, h := range p.handlers {
			all = h.AddTo(all, p.installation)
		}
		return o.addTo(all)
	})
	return nil
}

// check returns an error if the flags do not fit.
func (p *planner) check() error {
	switch {
	case p.flags.isOff() && (p.flags.hasEntries || p.flags.secret != "" || len(p.flags.annotations) > 0):
		return errors.New(
			`--webhooks "" serves no webhooks: leave out --webhook-entries, --webhook-secret and --webhook-annotation`)
	case p.flags.port != 0 && p.flags.isGiven:
		return errors.New("--webhook-port and --webhooks exclude each other: both name the port")
	case p.flags.secret != "" && p.flags.cert != "":
		return errors.New("--webhook-secret and --webhook-cert exclude each other: both name the certificate")
	case p.flags.service != "" && p.flags.service != p.plan.Name:
		return fmt.Errorf("--webhook-service is %q, but the Service of the manifests has the name of all their objects: leave out --webhook-service, or give the name with --name-prefix", p.flags.service)
	case p.pagesPort == manifests.WebhookPort:
		return fmt.Errorf("the metrics have the port %d, which the Service has for the webhooks: give %s another port",
			p.pagesPort, p.program.Pages.Flag)
	}
	return nil
}

// configurations returns the webhook configurations of an installation. They have entries if the program does not
// publish its webhooks, or if the user wants that.
func (p *planner) configurations() (all []webhookConfiguration, err error) {
	validating, mutating, err := entriesOf(p.handlers, configuration.Target{
		ServiceNamespace: p.plan.Namespace, ServiceName: p.plan.Name, Namespaces: p.program.Watched,
	})
	if err != nil {
		return nil, err
	}
	for i, entries := range [][]*configuration.Entry{validating, mutating} {
		if len(entries) == 0 {
			continue
		}
		if !p.flags.hasEntries && p.flags.isIssuing() {
			entries = nil
		}
		all = append(all, webhookConfiguration{manifests.WebhookConfigurationResources()[i], entries})
	}
	return all, nil
}
