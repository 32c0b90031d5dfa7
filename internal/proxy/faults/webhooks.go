package faults

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The kinds of faults of the webhooks of a program. They happen in the first step, from the first call on.
const (
	// WebhookDown lets no call reach the webhooks for some seconds.
	WebhookDown Kind = "webhook-down"
	// WebhookFailing answers the calls with 500 for some seconds.
	WebhookFailing Kind = "webhook-failing"
	// WebhookUntrusted serves the webhooks with a certificate that the API server does not trust, for some seconds.
	WebhookUntrusted Kind = "webhook-untrusted"
	// WebhookSlow delays each call for some seconds.
	WebhookSlow Kind = "webhook-slow"
	// WebhookTwice calls the webhooks twice for each request, as an API server does that calls a mutating webhook again
	// after another one has changed the object, or that repeats a request
	// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy).
	WebhookTwice Kind = "webhook-twice"
)

// maxWebhookWait is how long the API server may take to call webhooks that are new.
const maxWebhookWait = 20 * time.Second

// webhooks is the family of faults of webhooks. A fault adds copies of the webhook configurations that the program has
// published. A [callServer] answers the calls of the copies. The API server calls the copies besides the program
// itself, so that a request fails if the copy fails, and the program has no need to notice.
type webhooks struct{ baseFamily }

func (webhooks) Describe() Description {
	return Description{
		Group: "webhooks", Kinds: []Kind{WebhookDown, WebhookFailing, WebhookUntrusted, WebhookSlow, WebhookTwice},
		IsDefault: true,
	}
}

// Plan plans one run for each kind.
func (w webhooks) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	d := w.Describe()
	kinds := in.planned(d.Kinds...)
	switch {
	case len(kinds) == 0:
		return Plan{}, nil
	case !in.HasWebhooks:
		return newNotApplicable("the program publishes no webhook configuration", Kind(d.Group)), nil
	case len(in.SampleContents) == 0:
		return newNotApplicable("the user applies nothing in the first step", Kind(d.Group)), nil
	}
	var all []Fault
	for _, k := range kinds {
		all = append(all, Fault{Kind: k})
	}
	return newPlan(all), nil
}

func (webhooks) Text(f Fault) string {
	return fmt.Sprintf("%s in step %d", f.Kind, f.Step+1)
}

// BeforeStep makes the copies, and returns when the API server calls them.
func (w webhooks) BeforeStep(ctx context.Context, run *Run, f Fault) error {
	server, err := newCallServer(f.Kind)
	if err != nil {
		return err
	}
	run.AtStepEnd(server.close)
	copies := 0
	for _, created := range run.Created() {
		resource, isWebhooks := webhookResource(path.Dir(created))
		if !isWebhooks {
			continue
		}
		api := kube.Dynamic(run.Client().WithFieldManager(ForeignManager), resource, "")
		published, err := api.Get(ctx, path.Base(created))
		if kube.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		disturbed, hasURL, err := w.copyFor(run, published, server)
		if err != nil {
			return err
		}
		if !hasURL {
			continue
		}
		copies++
		run.AtStepEnd(func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxDisturbanceRemoval)
			defer cancel()
			return kube.IgnoreNotFound(api.Delete(ctx, disturbed.GetName()))
		})
		if _, err := api.Create(ctx, disturbed); err != nil {
			return err
		}
	}
	if copies == 0 {
		run.RecordNotApplicable(f, "the program publishes no webhook with a URL")
		return nil
	}
	if err := w.waitForCall(ctx, run, server); err != nil {
		return err
	}
	run.RecordFault(InServer, f.String())
	server.allowDisturbance()
	run.AtStepEnd(func() error {
		if !server.hasDisturbanceBegun() {
			run.RecordMissed(f)
		}
		return nil
	})
	return nil
}

// webhookResource returns the resource of a path of webhook configurations. It reports whether the path is one.
func webhookResource(collection string) (wire.Resource, bool) {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	for plural, kind := range map[string]string{
		"validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
		"mutatingwebhookconfigurations":   "MutatingWebhookConfiguration",
	} {
		if collection == path.Join("/apis", group.String(), plural) {
			return wire.Resource{GroupVersionKind: group.WithKind(kind), Plural: plural, ClusterScoped: true}, true
		}
	}
	return wire.Resource{}, false
}

// IsWebhookConfiguration reports whether a resource with its group, as in [proxy.Point], is one of webhook
// configurations.
func IsWebhookConfiguration(resource string) bool {
	return slices.Contains([]string{
		"validatingwebhookconfigurations.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io",
	}, resource)
}

// HasWebhooks reports whether one of the paths is that of a webhook configuration.
func HasWebhooks(paths []string) bool {
	return slices.ContainsFunc(paths, func(each string) bool {
		_, isWebhooks := webhookResource(path.Dir(each))
		return isWebhooks
	})
}

// copyFor returns a copy of a configuration, whose calls about the namespace of the run reach a server. It reports
// whether a webhook of the configuration has a URL. Otherwise there is no copy.
func (webhooks) copyFor(
	run *Run, published *unstructured.Unstructured, server *callServer,
) (disturbed *unstructured.Unstructured, hasURL bool, err error) {
	list, _, err := unstructured.NestedSlice(published.Object, "webhooks")
	if err != nil {
		return nil, false, err
	}
	var copied []any
	for _, item := range list {
		webhook, _ := item.(map[string]any)
		url, _, _ := unstructured.NestedString(webhook, "clientConfig", "url")
		if url == "" {
			continue
		}
		bundle, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		certificates, err := base64.StdEncoding.DecodeString(bundle)
		if err != nil {
			return nil, false, fmt.Errorf("the caBundle of a webhook of %s is no base64: %w", published.GetName(), err)
		}
		webhook["clientConfig"] = map[string]any{
			"url": server.addTarget(url, certificates), "caBundle": base64.StdEncoding.EncodeToString(server.bundle),
		}
		err = unstructured.SetNestedField(webhook, run.Namespace,
			"namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
		if err != nil {
			return nil, false, err
		}
		copied = append(copied, webhook)
	}
	if len(copied) == 0 {
		return nil, false, nil
	}
	copied = append(copied, map[string]any{
		"name": "probe.explorations.yare.dev", "clientConfig": copied[0].(map[string]any)["clientConfig"],
		"rules": []any{map[string]any{
			"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
		}},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": run.Namespace}},
		"matchConditions": []any{map[string]any{
			"name": "probe", "expression": `request.dryRun && request.name == "` + probeName + `"`,
		}},
		"failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
	})
	disturbed = &unstructured.Unstructured{Object: map[string]any{"webhooks": copied}}
	disturbed.SetGroupVersionKind(published.GroupVersionKind())
	disturbed.SetName("exploration." + run.Namespace + "." + published.GetName())
	return disturbed, true, nil
}

// probeName is the name of the ConfigMaps that waitForCall probes with. A webhook of a kind of others need not be about the
// sample, so each configuration of copies has an entry for these ConfigMaps.
const probeName = "exploration-probe"

// waitForCall makes dry runs of a ConfigMap until the API server calls the server about one of them.
func (webhooks) waitForCall(ctx context.Context, run *Run, server *callServer) error {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: probeName}}
	for until := time.Now().Add(maxWebhookWait); ; {
		_, err := kube.Create(ctx, run.Client(), probe, kube.DryRun())
		switch {
		case server.hasCalls():
			return nil
		case time.Now().After(until):
			return errors.Join(fmt.Errorf("the API server does not call the webhooks within %s", maxWebhookWait), err)
		}
		if err := clock.SleepReal(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
