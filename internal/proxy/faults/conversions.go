package faults

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The kinds of faults of the conversions of a program. They happen in the first step, from the first call on. Meanwhile
// another user reads the samples in all versions.
const (
	// ConversionDown lets no call reach the conversions for some seconds.
	ConversionDown Kind = "conversion-down"
	// ConversionFailing answers the calls with 500 for some seconds.
	ConversionFailing Kind = "conversion-failing"
	// ConversionUntrusted serves the conversions with a certificate that the API server does not trust, for some seconds.
	ConversionUntrusted Kind = "conversion-untrusted"
	// ConversionSlow delays each call for some seconds.
	ConversionSlow Kind = "conversion-slow"
)

const (
	// Definitions is the resource of CustomResourceDefinitions, as in [proxy.Point].
	Definitions = "customresourcedefinitions.apiextensions.k8s.io"
	// maxServedAnew is how long an API server takes at most to serve a kind anew whose conversion has changed.
	maxServedAnew = 5 * time.Second
	// maxConversionReads is how long another user reads the samples. It is shorter than the wait for the rest.
	maxConversionReads = 15 * time.Second
	// conversionReadInterval is the time between two reads.
	conversionReadInterval = 200 * time.Millisecond
)

// conversions is the family of faults of conversions. A fault changes spec.conversion of the CustomResourceDefinitions
// of the samples: the API server then calls a [callServer], which disturbs some calls and forwards all others to the
// program. A kind has one conversion in a cluster, so these faults run alone.
//
// A program that watches its CustomResourceDefinitions would put its own address back within milliseconds. The proxy
// holds the events of that watch until the step has come to rest, as a watch that lags does.
type conversions struct{ baseFamily }

func (conversions) Describe() Description {
	return Description{
		Group: "conversion", Kinds: []Kind{ConversionDown, ConversionFailing, ConversionUntrusted, ConversionSlow},
		IsDefault:        true,
		InterruptsServer: true, NeedsOwnControlPlane: true,
	}
}

// Plan plans one run for each kind.
func (c conversions) Plan(ctx context.Context, in *PlanInput) (Plan, error) {
	d := c.Describe()
	kinds := in.planned(d.Kinds...)
	if len(kinds) == 0 {
		return Plan{}, nil
	}
	converted, err := convertedResources(ctx, in.Cluster, in.SampleObjects)
	if err != nil {
		return Plan{}, err
	}
	if len(converted) == 0 {
		return newNotApplicable(whyNotConverted, Kind(d.Group)), nil
	}
	var all []Fault
	for _, k := range kinds {
		all = append(all, Fault{Kind: k})
	}
	return newPlan(all), nil
}

// whyNotConverted is why faults of conversions cannot happen.
const whyNotConverted = "no CustomResourceDefinition of the samples has a conversion with a URL"

func (conversions) Text(f Fault) string {
	return fmt.Sprintf("%s in step %d", f.Kind, f.Step+1)
}

// arm returns an effect that holds the events about CustomResourceDefinitions. The effect does not record that the
// fault has happened.
func (conversions) arm(a *Armed, _ stepContext) (effect, error) {
	hold := func(*proxy.Exchange, proxy.Event) proxy.Decision { return proxy.Decision{Until: a.ended} }
	return streamEffect{stream: Definitions, decide: hold}, nil
}

// BeforeStep changes the CustomResourceDefinitions, and returns when the API server calls by them.
func (c conversions) BeforeStep(ctx context.Context, run *Run, f Fault) error {
	converted, err := convertedResources(ctx, run, run.SampleObjects)
	if err != nil {
		return err
	}
	if len(converted) == 0 {
		run.RecordNotApplicable(f, whyNotConverted)
		return nil
	}
	server, err := newCallServer(f.Kind)
	if err != nil {
		return err
	}
	run.AtStepEnd(server.close)
	if _, err := run.Injector.Arm(f); err != nil {
		return err
	}
	for _, k := range converted {
		url := server.addTarget(k.url, k.bundle)
		run.AtStepEnd(func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxDisturbanceRemoval)
			defer cancel()
			return k.replaceURL(ctx, run, url, k.url, k.bundle)
		})
		if err := k.replaceURL(ctx, run, k.url, url, server.bundle); err != nil {
			return err
		}
	}
	run.RecordFault(InServer, f.String())
	server.allowDisturbance()
	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	readers.Go(func() {
		// the end of the step ends it
		_ = run.PreventRest(func() error { return readConverted(reading, run, converted, server) })
	})
	run.AtStepEnd(func() error {
		stop()
		readers.Wait()
		if !server.hasDisturbanceBegun() {
			run.RecordMissed(f)
		}
		return nil
	})
	return nil
}

// readConverted reads the samples in all versions until the disturbance is over and each read succeeds, or for
// maxConversionReads.
func readConverted(ctx context.Context, run *Run, converted []convertedResource, server *callServer) error {
	for until := time.Now().Add(maxConversionReads); time.Now().Before(until); {
		samples, err := convertedSamplesOf(run, converted)
		if err != nil {
			return err
		}
		var errs []error
		for _, s := range samples {
			_, err := s.api.Get(ctx, s.name)
			errs = append(errs, kube.IgnoreNotFound(err))
		}
		if server.isDisturbanceOver() && errors.Join(errs...) == nil {
			return nil
		}
		if err := clock.SleepReal(ctx, conversionReadInterval); err != nil {
			return err
		}
	}
	return nil
}

// convertedResource is the resource of samples that the API server converts by calls to a URL.
type convertedResource struct {
	// definition is the name of the CustomResourceDefinition, such as sites.example.com.
	definition string
	// resource is in one of the versions.
	resource wire.Resource
	// versions are the versions that the API server serves.
	versions []string
	// url is what the API server calls. bundle are the certificates by which it verifies the answers, in PEM.
	url    string
	bundle []byte
}

// convertedResources returns the resources of samples that the API server converts by calls to a URL.
func convertedResources(ctx context.Context, c Cluster, samples []Object) (all []convertedResource, err error) {
	isKnown := make(map[string]bool)
	for _, s := range samples {
		if isKnown[s.Resource] {
			continue
		}
		isKnown[s.Resource] = true
		definition, err := c.Definitions().Get(ctx, s.Resource)
		if kube.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		k := convertedResource{definition: s.Resource}
		var bundle string
		k.url, bundle = conversionURL(definition)
		if k.url == "" {
			continue
		}
		if k.bundle, err = base64.StdEncoding.DecodeString(bundle); err != nil {
			return nil, fmt.Errorf("the caBundle of the conversion of %s is no base64: %w", s.Resource, err)
		}
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if name, _ := version["name"].(string); version["served"] == true {
				k.versions = append(k.versions, name)
			}
		}
		if len(k.versions) == 0 {
			continue
		}
		k.resource = wire.Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: k.versions[0], Kind: kind}, Plural: plural,
		}
		all = append(all, k)
	}
	return all, nil
}

// conversionURL returns the URL of the conversion of a CustomResourceDefinition, and the caBundle. Both are empty if
// the conversion has no URL.
func conversionURL(definition *unstructured.Unstructured) (url, bundle string) {
	client, _, _ := unstructured.NestedStringMap(definition.Object, "spec", "conversion", "webhook", "clientConfig")
	return client["url"], client["caBundle"]
}

// replaceURL changes the URL of the conversion from one to another, and returns when the API server serves the kind
// anew. It does nothing if somebody else has changed the URL.
func (k convertedResource) replaceURL(ctx context.Context, run *Run, from, to string, bundle []byte) error {
	definitions := run.Definitions().For(run.Client().WithFieldManager(ForeignManager), "")
	live, err := definitions.Get(ctx, k.definition)
	if err != nil {
		return kube.IgnoreNotFound(err)
	}
	if url, _ := conversionURL(live); url != from {
		return nil
	}
	// The API server ends the watches of a kind when it serves the kind anew.
	watch := wire.Stream{Resource: k.resource, Representation: wire.MetadataOnly}
	stream, err := run.Client().Do(ctx, watch.Request(wire.VerbWatch))
	if err != nil {
		return fmt.Errorf("watch %s, to see when its conversion is used: %w", k.definition, err)
	}
	_, err = definitions.Patch(ctx, k.definition, kube.MergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.GetResourceVersion()},
		"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{
			"url": to, "caBundle": base64.StdEncoding.EncodeToString(bundle),
		}}}},
	}))
	if err != nil {
		_ = stream.BodyReader.Close() // the watch is not needed
		return err
	}
	late := time.AfterFunc(maxServedAnew, func() { _ = stream.BodyReader.Close() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, stream.BodyReader) // an error ends the watch too
	return stream.BodyReader.Close()
}

// convertedSample is a sample in one of the versions of its kind.
type convertedSample struct {
	object Object
	api    kube.API[unstructured.Unstructured]
	name   string
}

// convertedSamplesOf returns the samples of converted resources, each in all versions of its kind.
func convertedSamplesOf(run *Run, converted []convertedResource) (all []convertedSample, err error) {
	for _, raw := range run.SampleContents {
		sample := &unstructured.Unstructured{}
		if err := sample.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		for _, k := range converted {
			if sample.GroupVersionKind().GroupKind() != k.resource.GroupKind() {
				continue
			}
			for _, version := range k.versions {
				api, err := run.APIOf(k.resource.GroupKind().WithVersion(version), run.Namespace)
				if err != nil {
					return nil, err
				}
				all = append(all, convertedSample{Object{Resource: k.definition, Name: sample.GetName()}, api, sample.GetName()})
			}
		}
	}
	return all, nil
}
