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

// Install adds what API servers need to call the program: see [feature.Feature].
func (c *calls) Install(p *feature.Plan) error {
	c.installation = manifests.Installation{Program: c.program.Name, Name: p.Name, Namespace: p.Namespace}
	pagesPort, _ := feature.PodPort("", c.program.Pages.Address) // the program reports the error
	if err := c.checkPlan(p, pagesPort); err != nil || c.flags.isOff() {
		return err
	}
	port, err := feature.PodPort("--webhooks", c.flags.address)
	if err != nil {
		return err
	}
	used := []int{pagesPort, p.ProbesPort}
	if port == 0 {
		for port = 9443; slices.Contains(used, port); port++ {
		}
		p.Args = append(p.Args, "--webhooks=:"+strconv.Itoa(port))
	}
	if slices.Contains(used, port) {
		return fmt.Errorf("--webhooks has the port %d, which the program uses otherwise: give --webhooks another port", port)
	}
	if c.flags.service == "" && p.Name != c.program.Name {
		p.Args = append(p.Args, "--webhook-service="+p.Name)
	}
	if c.flags.secret != "" {
		p.Args = append(p.Args, "--webhook-cert="+folder+"/tls.crt", "--webhook-key="+folder+"/tls.key")
	}
	if c.isIssuing() {
		p.Access = append(p.Access, c.access(p.Name, p.Namespace)...)
	}
	if c.flags.secret != "" && len(c.flags.annotations) == 0 {
		p.Notes = append(p.Notes, "nobody writes the CA of the Secret "+c.flags.secret+" into the webhook configurations: "+
			"give --webhook-annotation cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE, "+
			"or set the field caBundle of each entry")
	}
	configurations, err := c.configurations(p)
	if err != nil {
		return err
	}
	p.IsCalled = true
	p.EndTime = max(p.EndTime+callTime, minEndTime)
	o := &objects{
		name: p.Name, namespace: p.Namespace, port: port, secret: c.flags.secret, isIssuing: c.isIssuing(),
		configurations: configurations, annotations: c.flags.annotations,
	}
	p.Edits = append(p.Edits, func(all []manifests.Object) ([]manifests.Object, error) {
		for _, h := range c.handlers {
			all = h.AddTo(all, c.installation)
		}
		return o.addTo(all)
	})
	return nil
}

// checkPlan returns an error if the flags do not fit. pagesPort is the port of the metrics, or 0.
func (c *calls) checkPlan(p *feature.Plan, pagesPort int) error {
	switch {
	case c.flags.isOff() && (c.flags.hasEntries || c.flags.secret != "" || len(c.flags.annotations) > 0):
		return errors.New(
			`--webhooks "" serves no webhooks: leave out --webhook-entries, --webhook-secret and --webhook-annotation`)
	case c.flags.secret != "" && c.flags.cert != "":
		return errors.New("--webhook-secret and --webhook-cert exclude each other: both name the certificate")
	case c.flags.service != "" && c.flags.service != p.Name:
		return fmt.Errorf("--webhook-service is %q, but the Service of the manifests has the name of all their objects: leave out --webhook-service, or give the name with --name-prefix", c.flags.service)
	case pagesPort == manifests.WebhookPort:
		return fmt.Errorf("the metrics have the port %d, which the Service has for the webhooks: give %s another port",
			pagesPort, c.program.Pages.Flag)
	}
	return nil
}

// isIssuing reports whether the program issues its own certificates and publishes its webhooks.
func (c *calls) isIssuing() bool { return c.flags.cert == "" && c.flags.secret == "" }

// entries returns the entries of all handlers for a target.
func (c *calls) entries(target configuration.Target) (validating, mutating []*configuration.Entry, err error) {
	for _, h := range c.handlers {
		if maker, ok := h.(EntryMaker); ok {
			v, m, err := maker.Entries(target)
			if err != nil {
				return nil, nil, err
			}
			validating, mutating = append(validating, v...), append(mutating, m...)
		}
	}
	return validating, mutating, nil
}

// configurations returns the webhook configurations of an installation. They have entries if the program does not
// publish its webhooks, or if the user wants that.
func (c *calls) configurations(p *feature.Plan) (all []webhookConfiguration, err error) {
	validating, mutating, err := c.entries(
		configuration.Target{ServiceNamespace: p.Namespace, ServiceName: p.Name, Namespaces: c.program.Watched})
	if err != nil {
		return nil, err
	}
	for i, entries := range [][]*configuration.Entry{validating, mutating} {
		if len(entries) == 0 {
			continue
		}
		if !c.flags.hasEntries && c.isIssuing() {
			entries = nil
		}
		all = append(all, webhookConfiguration{manifests.WebhookConfigurationResources()[i], entries})
	}
	return all, nil
}
