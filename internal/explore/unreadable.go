package explore

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// unreadableSuffix is the end of the name of an object that the program cannot decode.
const unreadableSuffix = "-unreadable"

// maxSchemaWait is how long an API server may take to observe another schema.
const maxSchemaWait = time.Minute

// planUnreadable returns the fault that stores an object which the program cannot decode, if the schema of
// the first sample refuses such an object.
func (e *explorer) planUnreadable(ctx context.Context, has func(schedule.Kind) bool) ([]schedule.Fault, error) {
	if !has(schedule.Unreadable) {
		return nil, nil
	}
	object, err := e.unreadableObject(dryRunNamespace)
	if err != nil {
		return nil, err
	}
	crd, err := e.definitionOf(ctx, object)
	if err != nil {
		return nil, err
	}
	if crd == nil {
		e.coverage.NotApplicable[schedule.Unreadable] = fmt.Sprintf("%s is no custom resource", object.GetKind())
		return nil, nil
	}
	isRefused, err := e.refusesUnreadable(ctx, object)
	if err != nil {
		return nil, err
	}
	if !isRefused {
		e.coverage.NotApplicable[schedule.Unreadable] = fmt.Sprintf("the schema of %s allows values of any type", object.GetKind())
		return nil, nil
	}
	return []schedule.Fault{{Kind: schedule.Unreadable}}, nil
}

// unreadableObject returns the first sample under another name, with values of other types.
func (e *explorer) unreadableObject(namespace string) (*unstructured.Unstructured, error) {
	object, err := e.decode(e.options.Steps[0].Apply[0], namespace)
	if err != nil {
		return nil, err
	}
	object.SetName(object.GetName() + unreadableSuffix)
	for name, value := range object.Object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			object.Object[name] = withOtherTypes(value)
		}
	}
	return object, nil
}

// withOtherTypes returns an object whose members have values of other types than those of value, or a text for
// a value that is no object.
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

// refusesUnreadable reports whether the server would refuse to store an object that the program cannot decode.
func (e *explorer) refusesUnreadable(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	api, err := e.apiOf(object.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return false, err
	}
	tried := object.DeepCopy()
	tried.SetNamespace(dryRunNamespace)
	_, err = api.For(e.client.WithFieldManager(userManager), dryRunNamespace).Create(ctx, tried, kube.DryRun())
	if isRefusedValue(err) {
		return true, nil
	}
	return false, err
}

// isRefusedValue reports whether the server has refused to store the values of an object.
func isRefusedValue(err error) bool { return kube.IsInvalid(err) || kube.IsBadRequest(err) }

// storeUnreadable stores an object that the program cannot decode, by a schema that allows everything for a
// moment. A definition that was tightened later leaves such objects.
func (r *run) storeUnreadable(ctx context.Context, f schedule.Fault) (err error) {
	e := r.explorer
	object, err := e.unreadableObject(r.namespace)
	if err != nil {
		return err
	}
	api, err := e.apiOf(object.GroupVersionKind(), r.namespace)
	if err != nil {
		return err
	}
	r.recordEvent(finding.Event{Lane: finding.User, To: finding.Server, Text: f.String(), Fault: true})
	definition := kube.Dynamic(e.client.WithFieldManager(userManager), definitions(), "")
	name := resourceName(api.Resource())
	original, err := definition.Get(ctx, name)
	if err != nil {
		return err
	}
	if err := setVersions(ctx, definition, name, looseVersions(original)); err != nil {
		return err
	}
	stored := e.waitForSchema(ctx, func(ctx context.Context) (bool, error) {
		_, err := api.For(e.client.WithFieldManager(userManager), r.namespace).Create(ctx, object)
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
	if err := setVersions(ctx, definition, name, versionsOf(original)); err != nil {
		return err
	}
	if stored != nil {
		return stored
	}
	return e.waitForSchema(ctx, func(ctx context.Context) (bool, error) { return e.refusesUnreadable(ctx, object) })
}

// waitForSchema waits until the API server behaves by another schema.
func (e *explorer) waitForSchema(ctx context.Context, isObserved func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxSchemaWait, fmt.Errorf("the API server has not observed another schema within %s", maxSchemaWait))
	defer cancel()
	for {
		if observed, err := isObserved(ctx); observed || err != nil {
			return err
		}
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// versionsOf returns the versions of a CustomResourceDefinition.
func versionsOf(definition *unstructured.Unstructured) []any {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return versions
}

// looseVersions returns the versions of a CustomResourceDefinition with a schema that allows everything.
func looseVersions(definition *unstructured.Unstructured) []any {
	versions := versionsOf(definition)
	for _, each := range versions {
		version, _ := each.(map[string]any)
		version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
		delete(version, "selectableFields") // they have to be in the schema
	}
	return versions
}

// setVersions replaces the versions of a CustomResourceDefinition.
func setVersions(ctx context.Context, definition kube.API[unstructured.Unstructured], name string, versions []any) error {
	_, err := definition.Modify(ctx, name, func(d *unstructured.Unstructured) error {
		return unstructured.SetNestedSlice(d.Object, versions, "spec", "versions")
	})
	return err
}
