package operator

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/publishing"
)

const (
	// firstCallTime is how long an API server may take in a test until it calls webhooks that were published.
	firstCallTime = 30 * time.Second
	// probeInterval is the time between two probes.
	probeInterval = 50 * time.Millisecond
)

// waitForCalls waits until the API server calls the webhooks of each configuration of p. It makes dry runs of a ConfigMap
// of a namespace and a name until the prober has seen the calls. It returns an error if that takes more than
// firstCallTime. If the program may not create ConfigMaps, waitForCalls returns when the configurations are published:
// then the first calls may be missing.
func waitForCalls(ctx context.Context, client *kube.Client, p *publishing.Publisher, prober *admission.Prober, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, firstCallTime)
	defer cancel()
	missing := make(map[string]bool)
	for _, s := range p.Status() {
		missing[s.Kind] = true
	}
	for {
		err := tryConfigMap(ctx, client, namespace, name)
		for isSeen := true; isSeen; {
			select {
			case kind := <-prober.Seen():
				delete(missing, kind)
			default:
				isSeen = false
			}
		}
		if len(missing) == 0 || kube.IsForbidden(err) && p.Ready() == nil {
			return nil
		}
		select {
		case <-time.After(probeInterval):
		case <-ctx.Done():
			return fmt.Errorf("the API server does not call the webhooks of this program %s after their publication: %w",
				firstCallTime, errors.Join(ctx.Err(), p.Ready(), err))
		}
	}
}

// waitForNoCalls waits until a dry run as those of [waitForCalls] reaches the prober no more, or ctx ends.
func waitForNoCalls(ctx context.Context, client *kube.Client, prober *admission.Prober, namespace, name string) {
	for isCalled := true; isCalled && ctx.Err() == nil; {
		for isSeen := true; isSeen; { // the calls of before
			select {
			case <-prober.Seen():
			default:
				isSeen = false
			}
		}
		_ = tryConfigMap(ctx, client, namespace, name) // the API server has called when it answers
		select {
		case <-prober.Seen():
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
		Verb:      wire.VerbCreate,
		Resource:  wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"},
		Namespace: namespace, Query: url.Values{"dryRun": {"All"}},
		Body: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`),
	})
	return err
}
