package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// Unreadable stores an object of the first sample's kind before the step, whose fields have values of
// other types. An earlier schema has allowed them.
const Unreadable Kind = "unreadable"

// UnreadableSuffix is the end of the name of an object that the program cannot decode.
const UnreadableSuffix = "-unreadable"

const (
	// maxSchemaWait is how long an API server may take to observe another schema.
	maxSchemaWait = time.Minute
	// schemaPollInterval is the time between two tries.
	schemaPollInterval = 100 * time.Millisecond
	// dryRunNamespace is where an object is tried without storing it.
	dryRunNamespace = "default"
)

// unreadable is the family of [Unreadable].
type unreadable struct{ baseFamily }

func (unreadable) Describe() Description {
	return Description{OptIn: []Kind{Unreadable}, NeedsOwnControlPlane: true}
}

// Plan plans one run, if the schema of the first sample refuses an object that the program cannot decode.
func (unreadable) Plan(ctx context.Context, in *PlanInput) (Plan, error) {
	if !in.has(Unreadable) {
		return Plan{}, nil
	}
	object, err := unreadableObject(firstSample(in.SampleContents), dryRunNamespace)
	if err != nil {
		return Plan{}, err
	}
	api, err := in.Cluster.APIOf(object.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return Plan{}, err
	}
	if _, err := in.Cluster.Definitions().Get(ctx, api.Resource().GroupResource().String()); kube.IsNotFound(err) {
		return newNotApplicable(object.GetKind()+" is no custom resource", Unreadable), nil
	} else if err != nil {
		return Plan{}, err
	}
	isRefused, err := isRefusedBySchema(ctx, in.Cluster, object)
	if err != nil {
		return Plan{}, err
	}
	if !isRefused {
		return newNotApplicable(fmt.Sprintf("the schema of %s allows values of any type", object.GetKind()), Unreadable), nil
	}
	return newPlan([]Fault{{Kind: Unreadable}}), nil
}

func (unreadable) Text(f Fault) string {
	return fmt.Sprintf("%s object before step %d", f.Kind, f.Step+1)
}

// unreadableObject returns a sample with another name, and with values of other types.
func unreadableObject(sample json.RawMessage, namespace string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(sample); err != nil {
		return nil, fmt.Errorf("read a sample: %w", err)
	}
	object.SetNamespace(namespace)
	object.SetName(object.GetName() + UnreadableSuffix)
	for name, value := range object.Object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			object.Object[name] = withOtherTypes(value)
		}
	}
	return object, nil
}

// withOtherTypes returns an object whose members have values of other types than the members of value. The result is
// a text for a value that is no object. Example: {"replicas": 2, "image": "web"} becomes {"replicas": "unreadable",
// "image": 1}.
func withOtherTypes(value any) any {
	members, ok := value.(map[string]any)
	if !ok || len(members) == 0 {
		return "unreadable"
	}
	others := make(map[string]any, len(members))
	for name, each := range members {
		if _, isText := each.(string); isText {
			others[name] = int64(1)
		} else {
			others[name] = "unreadable"
		}
	}
	return others
}

// isRefusedBySchema reports whether the server would refuse to store an object that the program cannot decode.
func isRefusedBySchema(ctx context.Context, c Cluster, object *unstructured.Unstructured) (bool, error) {
	api, err := c.APIOf(object.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return false, err
	}
	tried := object.DeepCopy()
	tried.SetNamespace(dryRunNamespace)
	_, err = api.Create(ctx, tried, kube.DryRun())
	if isRefusedValue(err) {
		return true, nil
	}
	return false, err
}

// BeforeStep stores an object that the program cannot decode. The schema allows everything for a moment. A
// definition that was tightened later leaves such objects.
func (unreadable) BeforeStep(ctx context.Context, run *Run, f Fault) error {
	object, err := unreadableObject(firstSample(run.SampleContents), run.Namespace)
	if err != nil {
		return err
	}
	api, err := run.APIOf(object.GroupVersionKind(), run.Namespace)
	if err != nil {
		return err
	}
	run.RecordFault(ByUser, f.String())
	name := api.Resource().GroupResource().String()
	definition, err := run.Definitions().Get(ctx, name)
	if err != nil {
		return err
	}
	original := versionsOf(definition)
	if err := setVersions(ctx, run, name, looseVersions(original)); err != nil {
		return err
	}
	stored := waitForSchema(ctx, func(ctx context.Context) (bool, error) {
		_, err := api.Create(ctx, object)
		switch {
		case err == nil || kube.IsAlreadyExists(err):
			return true, nil
		case isRefusedValue(err):
			return false, nil
		}
		return false, err
	})
	// The schema is as before in any case.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxSchemaWait)
	defer cancel()
	if err := setVersions(ctx, run, name, original); err != nil {
		return err
	}
	if stored != nil {
		return stored
	}
	return waitForSchema(ctx, func(ctx context.Context) (bool, error) { return isRefusedBySchema(ctx, run, object) })
}

// waitForSchema waits until the API server behaves by another schema.
func waitForSchema(ctx context.Context, isObserved func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxSchemaWait,
		fmt.Errorf("the API server has not observed another schema within %s", maxSchemaWait))
	defer cancel()
	for {
		if observed, err := isObserved(ctx); observed || err != nil {
			return err
		}
		if err := clock.SleepReal(ctx, schemaPollInterval); err != nil {
			return err
		}
	}
}

// versionsOf returns a copy of the versions of a CustomResourceDefinition.
func versionsOf(definition *unstructured.Unstructured) []any {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return versions
}

// looseVersions returns versions of a CustomResourceDefinition with a schema that allows everything.
func looseVersions(versions []any) (loose []any) {
	for _, each := range versions {
		version, _ := each.(map[string]any)
		version = maps.Clone(version)
		version["schema"] = map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}
		delete(version, "selectableFields") // they have to be in the schema
		loose = append(loose, version)
	}
	return loose
}

// setVersions replaces the versions of a CustomResourceDefinition.
func setVersions(ctx context.Context, c Cluster, name string, versions []any) error {
	_, err := c.Definitions().Modify(ctx, name, func(d *unstructured.Unstructured) error {
		return unstructured.SetNestedSlice(d.Object, versions, "spec", "versions")
	})
	return err
}
