package operator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// webhookPlan is what an installation of a program with webhooks has more. The zero value is that of a program without
// webhooks.
type webhookPlan struct {
	manifests.Webhooks
	// args are the arguments of the Deployment that are not given.
	args []string
	// access are the permissions that the program needs for its webhooks.
	access []kube.Access
}

const (
	// webhookDrainTime is how long a Pod accepts calls after the signal to end. Meanwhile its parts end.
	webhookDrainTime = 15 * time.Second
	// webhookCallTime is how long an API server waits for the answer to its last call.
	webhookCallTime = 10 * time.Second
	// minWebhookGrace is the least time that a Pod with webhooks has to end.
	minWebhookGrace = 45 * time.Second
)

// endTime returns how long a Pod may take to end at most, if its slowest part takes shutdownTime. It returns 0 without
// webhooks.
func (w webhookPlan) endTime(shutdownTime time.Duration) time.Duration {
	if w.Port == 0 {
		return 0
	}
	return max(minWebhookGrace, max(webhookDrainTime, shutdownTime)+webhookCallTime+endMargin)
}

// planWebhooks returns what the installation needs for its webhooks. name is that of the objects of the installation, and
// usedPorts are the other ports of the Pod.
func (p manifestPrinter) planWebhooks(o options, name, namespace string, usedPorts ...int) (plan webhookPlan, err error) {
	webhooks, flags := webhooksOf(p.parts), p.flags
	hasFlags := flags.webhookEntries || flags.webhookSecret != "" || len(flags.webhookAnnotations) > 0
	switch {
	case hasFlags && len(webhooks) == 0:
		_, err := webhookCommanderIn(p.parts)
		return plan, fmt.Errorf("%w, or leave out --webhook-entries, --webhook-secret and --webhook-annotation", err)
	case hasFlags && o.webhooks.isOff:
		return plan, errors.New(`--webhooks "" serves no webhooks: leave out --webhook-entries, --webhook-secret and --webhook-annotation`)
	case len(webhooks) == 0 || o.webhooks.isOff:
		return plan, nil
	case flags.webhookSecret != "" && o.webhooks.cert != "":
		return plan, errors.New("--webhook-secret and --webhook-cert exclude each other: both name the certificate")
	case o.webhooks.service != "" && o.webhooks.service != name:
		return plan, fmt.Errorf("--webhook-service is %q, and the manifests have a Service with the name of all objects: leave out --webhook-service, or give that name with --name-prefix", o.webhooks.service)
	}
	if plan.Port, err = podPort("--webhooks", o.webhooks.address); err != nil {
		return plan, err
	}
	if plan.Port == 0 {
		for plan.Port = 9443; slices.Contains(usedPorts, plan.Port); plan.Port++ {
		}
		plan.args = append(plan.args, "--webhooks=:"+strconv.Itoa(plan.Port))
	}
	if slices.Contains(usedPorts, plan.Port) {
		return plan, fmt.Errorf("--webhooks has the port %d, which the program uses otherwise: give --webhooks another port", plan.Port)
	}
	if usedPorts[0] == manifests.WebhookPort {
		return plan, fmt.Errorf("the Service has the port %d for webhooks, so that the metrics need another one: give --listen, or --listen-secure, another port", usedPorts[0])
	}
	if o.webhooks.service == "" && name != p.program {
		plan.args = append(plan.args, "--webhook-service="+name)
	}
	isIssuing := o.webhooks.isIssuing() && flags.webhookSecret == ""
	if isIssuing {
		plan.Secret = manifests.WebhookSecretName(name)
		plan.access = webhookAccess(name, namespace, webhooks)
	} else if flags.webhookSecret != "" {
		plan.MountedSecret = flags.webhookSecret
		plan.args = append(plan.args, "--webhook-cert="+manifests.WebhookFolder+"/tls.crt", "--webhook-key="+manifests.WebhookFolder+"/tls.key")
	}
	plan.Annotations = flags.webhookAnnotations
	plan.Configurations, err = p.webhookConfigurations(webhookTarget{name, namespace, o.namespaces}, flags.webhookEntries || !isIssuing)
	return plan, err
}

// webhookConfigurations returns the webhook configurations, with their entries if hasEntries.
func (p manifestPrinter) webhookConfigurations(t webhookTarget, hasEntries bool) (all []manifests.WebhookConfiguration, err error) {
	webhooks := webhooksOf(p.parts)
	var validating, mutating []any
	if hasEntries {
		commander, err := webhookCommanderIn(p.parts)
		if err == nil {
			validating, mutating, err = commander.configurationEntries(webhooks, t)
		}
		if err != nil {
			return nil, err
		}
	}
	hasValidators, hasDefaulters := webhookRoles(webhooks)
	if hasValidators {
		all = append(all, manifests.WebhookConfiguration{Resource: manifests.ValidatingConfigurations(), Entries: validating})
	}
	if hasDefaulters {
		all = append(all, manifests.WebhookConfiguration{Resource: manifests.MutatingConfigurations(), Entries: mutating})
	}
	return all, nil
}

// webhookNames returns the names of the webhooks that an installation has.
func webhookNames(parts []Part, o options) (names []string) {
	if o.webhooks.isOff {
		return nil
	}
	for _, w := range webhooksOf(parts) {
		names = append(names, w.Name())
	}
	return names
}
