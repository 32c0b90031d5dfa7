package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

const (
	// firstCallTime is how long an API server may take in a test until it calls webhooks that were published.
	firstCallTime = 30 * time.Second
	// probeInterval is the time between two probes.
	probeInterval = 50 * time.Millisecond
)

// webhookTest is what a program does about its webhooks in the process of a test alone. [Run] alone makes one, so the
// linker leaves the code out of programs made with [Main]. The types of its parameters are linked into each program.
type webhookTest interface {
	// wrapHandler returns a handler that answers probes, and passes all other calls on to next. It is called once.
	wrapHandler(next http.Handler) http.Handler
	// waitForCalls waits until the API server calls the webhooks of configurations of these kinds. The client makes probes
	// with a namespace and a name. ready returns nil once the configurations are published. wrapHandler was called before.
	waitForCalls(
		ctx context.Context, client *kube.Client, kinds []string, ready func() error, namespace, name string,
	) error
	// waitForNoCalls waits until no probe reaches the handler any more, or ctx ends.
	waitForNoCalls(ctx context.Context, client *kube.Client, namespace, name string)
	// publishConversions calls [conversionService.publishInTest].
	publishConversions(ctx context.Context, c conversionService, client *kube.Client, log *slog.Logger) error
}

// webhookProbe is a [webhookTest]. Its probes are dry runs of new ConfigMaps.
type webhookProbe struct {
	prober *admission.Prober // wrapHandler sets it
}

func (p *webhookProbe) wrapHandler(next http.Handler) http.Handler {
	p.prober = admission.NewProber(next)
	return p.prober
}

func (*webhookProbe) publishConversions(
	ctx context.Context, c conversionService, client *kube.Client, log *slog.Logger,
) error {
	return c.publishInTest(ctx, client, log)
}

// waitForCalls makes dry runs of a ConfigMap of a namespace and a name until the prober has seen the calls. It returns
// an error if that takes more than firstCallTime. If the program may not create ConfigMaps, waitForCalls returns when
// the configurations are published: then the first calls may be missing.
func (p *webhookProbe) waitForCalls(
	ctx context.Context, client *kube.Client, kinds []string, ready func() error, namespace, name string,
) error {
	ctx, cancel := context.WithTimeout(ctx, firstCallTime)
	defer cancel()
	missing := make(map[string]bool)
	for _, kind := range kinds {
		missing[kind] = true
	}
	for {
		err := tryConfigMap(ctx, client, namespace, name)
		for isSeen := true; isSeen; {
			select {
			case kind := <-p.prober.Seen():
				delete(missing, kind)
			default:
				isSeen = false
			}
		}
		if len(missing) == 0 || kube.IsForbidden(err) && ready() == nil {
			return nil
		}
		select {
		case <-time.After(probeInterval):
		case <-ctx.Done():
			return fmt.Errorf("the API server does not call the webhooks of this program %s after their publication: %w",
				firstCallTime, errors.Join(ctx.Err(), ready(), err))
		}
	}
}

// waitForNoCalls waits until a dry run as those of waitForCalls reaches the prober no more, or ctx ends.
func (p *webhookProbe) waitForNoCalls(ctx context.Context, client *kube.Client, namespace, name string) {
	for isCalled := true; isCalled && ctx.Err() == nil; {
		for isSeen := true; isSeen; { // the calls of before
			select {
			case <-p.prober.Seen():
			default:
				isSeen = false
			}
		}
		_ = tryConfigMap(ctx, client, namespace, name) // the API server has called when it answers
		select {
		case <-p.prober.Seen():
			select {
			case <-time.After(probeInterval):
			case <-ctx.Done():
			}
		default:
			isCalled = false
		}
	}
}

// tryConfigMap makes a dry run of a new ConfigMap. The types of package kube for writes would enlarge each program.
func tryConfigMap(ctx context.Context, client *kube.Client, namespace, name string) error {
	_, err := client.Do(ctx, &wire.Request{
		Verb: wire.VerbCreate,
		Resource: wire.Resource{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps",
		},
		Namespace: namespace, Query: url.Values{"dryRun": {"All"}},
		Body: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`),
	})
	return err
}
