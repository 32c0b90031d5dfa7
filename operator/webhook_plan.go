package operator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/configuration"
)

// webhookPlan is what webhooks add to an installation. The zero value is that of a program without
// webhooks.
type webhookPlan struct {
	// addTo adds the webhooks to the objects of the installation. It is nil without webhooks.
	addTo func(objects []manifests.Object) ([]manifests.Object, error)
	// args are the arguments of the Deployment that are not webhooks.
	args []string
	// access are the permissions that the program needs for its webhooks.
	access []kube.Access
	// endTime is how long a Pod may take to end at most.
	endTime time.Duration
}

const (
	// webhookDrainTime is how long a Pod accepts calls after the signal to end. Meanwhile its parts end.
	webhookDrainTime = 15 * time.Second
	// webhookReachTime is how long a Pod may be unknown to API servers after its start: until the next probe of its
	// readiness, after five seconds at most, and until kube-proxy knows that it is ready.
	webhookReachTime = 10 * time.Second
	// webhookCallTime is how long an API server waits for the answer to its last call.
	webhookCallTime = 10 * time.Second
	// minWebhookEndTime is the least time that a Pod with webhooks has to end.
	minWebhookEndTime = 45 * time.Second
)

// webhookPlanner makes the [webhookPlan] of an installation.
type webhookPlanner struct {
	// program is the name of the program, and name is that of the objects of the installation.
	program, name, namespace string
	parts                    []Part
	options                  *options
	// pagesFlag is the flag that gives the port of the metrics.
	pagesFlag string
	// port is where the program serves its metrics, or 0, and probesPort is where it serves its health.
	port, probesPort int
	// shutdownTime is how long the slowest part takes to end.
	shutdownTime time.Duration
}

// plan returns the plan, or an error if the flags do not fit.
func (p webhookPlanner) plan() (plan webhookPlan, err error) {
	if err := p.check(); err != nil || p.options.webhooks.isOff() {
		return plan, err
	}
	port, err := podPort("--webhooks", p.options.webhooks.address)
	if err != nil {
		return plan, err
	}
	plan.endTime = max(minWebhookEndTime, max(webhookDrainTime, p.shutdownTime)+webhookCallTime+endMargin)
	used := []int{p.port, p.probesPort}
	if port == 0 {
		for port = 9443; slices.Contains(used, port); port++ {
		}
		plan.args = append(plan.args, "--webhooks=:"+strconv.Itoa(port))
	}
	if slices.Contains(used, port) {
		return plan, fmt.Errorf("--webhooks has the port %d, which the program uses otherwise: give --webhooks another port",
			port)
	}
	if p.options.webhooks.service == "" && p.name != p.program {
		plan.args = append(plan.args, "--webhook-service="+p.name)
	}
	if p.options.manifests.webhookSecret != "" {
		plan.args = append(plan.args, "--webhook-cert="+manifests.WebhookFolder+"/tls.crt",
			"--webhook-key="+manifests.WebhookFolder+"/tls.key")
	}
	if p.isIssuing() {
		plan.access = webhookAccess(p.name, p.namespace, p.parts)
	}
	all, err := p.configurations()
	if err != nil {
		return plan, err
	}
	w := &manifests.Webhooks{
		Name: p.name, Namespace: p.namespace, Port: port, Secret: p.options.manifests.webhookSecret, IsIssuing: p.isIssuing(),
		Configurations: all, Annotations: p.options.manifests.webhookAnnotations,
	}
	conversions, hasConversions, err := conversionsOf(p.parts)
	if err != nil {
		return plan, err
	}
	plan.addTo = func(objects []manifests.Object) ([]manifests.Object, error) {
		if hasConversions {
			objects = conversions.addTo(objects, p.name, p.namespace)
		}
		return w.AddTo(objects)
	}
	return plan, nil
}

// check returns an error if the flags do not fit.
func (p webhookPlanner) check() error {
	webhooks, flags := p.options.webhooks, p.options.manifests
	switch {
	case webhooks.isOff() && flags.isAboutWebhooks():
		return errors.New(
			`--webhooks "" serves no webhooks: leave out --webhook-entries, --webhook-secret and --webhook-annotation`)
	case flags.webhookSecret != "" && webhooks.cert != "":
		return errors.New("--webhook-secret and --webhook-cert exclude each other: both name the certificate")
	case webhooks.service != "" && webhooks.service != p.name:
		return fmt.Errorf("--webhook-service is %q, but the Service of the manifests has the name of all their objects: leave out --webhook-service, or give the name with --name-prefix", webhooks.service)
	case p.port == manifests.WebhookPort:
		return fmt.Errorf("the metrics have the port %d, which the Service has for the webhooks: give %s another port",
			p.port, p.pagesFlag)
	}
	return nil
}

// isIssuing reports whether the program issues its own certificates and publishes its webhooks.
func (p webhookPlanner) isIssuing() bool {
	return p.options.webhooks.cert == "" && p.options.manifests.webhookSecret == ""
}

// configurations returns the webhook configurations. They have entries if the program does not publish its webhooks, or
// if the user wants that.
func (p webhookPlanner) configurations() (all []manifests.WebhookConfiguration, err error) {
	var validatingEntries, mutatingEntries []any
	if p.options.manifests.webhookEntries || !p.isIssuing() {
		validating, mutating, err := configuration.Entries(webhooksOf(p.parts),
			configuration.Target{ServiceNamespace: p.namespace, ServiceName: p.name, Namespaces: p.options.namespaces})
		if err != nil {
			return nil, err
		}
		for _, e := range validating {
			validatingEntries = append(validatingEntries, e)
		}
		for _, e := range mutating {
			mutatingEntries = append(mutatingEntries, e)
		}
	}
	hasValidators, hasDefaulters := webhookTypes(webhooksOf(p.parts))
	resources := manifests.WebhookConfigurationResources() // of validators, and then of defaulters
	if hasValidators {
		all = append(all, manifests.WebhookConfiguration{Resource: resources[0], Entries: validatingEntries})
	}
	if hasDefaulters {
		all = append(all, manifests.WebhookConfiguration{Resource: resources[1], Entries: mutatingEntries})
	}
	return all, nil
}
