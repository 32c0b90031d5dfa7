// Package schemachange waits until an API server uses the changed schemas of CustomResourceDefinitions.
//
// The condition Established of a definition stays True when a schema changes, and nothing in its status says which
// schema the server uses. For some milliseconds a server drops the fields that only the new schema has, with a warning
// and no error. So [Snapshot.Wait] asks the server:
//
//   - Where the new schema has fields that the former one lacks, it sends a dry-run create with a strict validation, whose object has
//     all fields. A server with the former schema refuses an unknown field.
//   - Otherwise it waits until the OpenAPI document of the version has no value of the former schema where the new schema has
//     another value.
//
// Both speak for the server that answers. Other servers behind the same address may be later.
package schemachange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// maxWait is how long an API server may take to use a schema.
	maxWait    = 10 * time.Second
	pollPeriod = 20 * time.Millisecond
	// probeName is the name of the objects of dry runs, and of the namespace that they name. No namespace of the name
	// exists, so that the server refuses the object before it calls a webhook.
	probeName = "yare-schema-probe"
)

// Snapshot is the state of CustomResourceDefinitions before they are applied.
type Snapshot struct {
	client *kube.Client
	http   *http.Client
	host   string
	names  []string
	// former has the schemas of the definitions in the cluster.
	former map[schema.GroupVersionKind]object
}

type object = map[string]any

// Take returns the state of the definitions with these names.
func Take(ctx context.Context, config *kube.Config, names []string) (*Snapshot, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		client: client, http: &http.Client{Transport: transport, Timeout: maxWait},
		host: strings.TrimSuffix(config.Host, "/"), names: names, former: make(map[schema.GroupVersionKind]object),
	}
	for _, name := range names {
		definition, err := s.definitions().Get(ctx, name)
		if kube.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(s.former, schemasOf(definition))
	}
	return s, nil
}

func (s *Snapshot) definitions() kube.API[unstructured.Unstructured] {
	return kube.Dynamic(s.client, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		},
		Plural: "customresourcedefinitions", ClusterScoped: true,
	}, "")
}

// Wait returns when the server uses the schemas of the definitions, which were applied after s was taken. Kinds that
// the cluster did not have are left out. The error names the kinds whose schemas the server does not use after ten
// seconds.
func (s *Snapshot) Wait(ctx context.Context) error {
	defer s.http.CloseIdleConnections()
	if len(s.former) == 0 {
		return nil
	}
	var late []string
	deadline := time.Now().Add(maxWait)
	for _, name := range s.names {
		definition, err := s.definitions().Get(ctx, name)
		if err != nil {
			return err
		}
		for kind, present := range schemasOf(definition) {
			former, isKnown := s.former[kind]
			if !isKnown || reflect.DeepEqual(former, present) {
				continue
			}
			isUsed := func() (bool, error) { return s.isPublished(ctx, kind, former, present) }
			if hasFurtherFields(former, present) {
				isUsed = func() (bool, error) { return s.isAccepted(ctx, definition, kind, present) }
			}
			used, err := poll(ctx, deadline, isUsed)
			switch {
			case err != nil:
				return fmt.Errorf("see whether the server uses the schema of %s: %w", kind, err)
			case !used:
				late = append(late, kind.String())
			}
		}
	}
	if len(late) > 0 {
		return fmt.Errorf("%s after its change the server does not use the schema of %s yet: writes may lose new fields",
			maxWait, strings.Join(late, ", "))
	}
	return nil
}

// poll calls check until it returns true. It returns false after the deadline. At least one call is made.
func poll(ctx context.Context, deadline time.Time, check func() (bool, error)) (bool, error) {
	for {
		if done, err := check(); done || err != nil {
			return done, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(pollPeriod):
		}
	}
}

// isAccepted reports whether the server knows all fields of a schema.
func (s *Snapshot) isAccepted(
	ctx context.Context, definition *unstructured.Unstructured, kind schema.GroupVersionKind, present object,
) (bool, error) {
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
	resource := wire.Resource{GroupVersionKind: kind, Plural: plural, ClusterScoped: scope == "Cluster"}
	namespace := probeName
	if resource.ClusterScoped {
		namespace = ""
	}
	content, _ := sampleOf(present).(object)
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	content["metadata"] = object{"name": probeName}
	api, sample := kube.Dynamic(s.client, resource, namespace), &unstructured.Unstructured{Object: content}
	_, err := api.Create(ctx, sample, kube.DryRun(), kube.Strict())
	e, isRefused := kube.AsError(err)
	switch {
	case err == nil:
		return true, nil
	case !isRefused || e.Code == 0:
		return false, err
	default:
		// Any other refusal comes after the check of the fields.
		return !kube.HasReason(err, "BadRequest") || !strings.Contains(e.Answer.Message, "unknown field"), nil
	}
}

// isPublished reports whether the OpenAPI document of a version has no value of the former schema where present has
// another one. A server without a document has published all that it will.
func (s *Snapshot) isPublished(
	ctx context.Context, kind schema.GroupVersionKind, former, present object,
) (bool, error) {
	url := s.host + "/openapi/v3/apis/" + kind.GroupVersion().String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return true, nil
	}
	var document struct {
		Components struct {
			Schemas map[string]object `json:"schemas"`
		} `json:"components"`
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err = errors.Join(err, json.Unmarshal(body, &document)); err != nil {
		return false, fmt.Errorf("read the OpenAPI document of %s: %w", kind.GroupVersion(), err)
	}
	named := object{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
	for _, published := range document.Components.Schemas {
		kinds, _ := published["x-kubernetes-group-version-kind"].([]any)
		if slices.ContainsFunc(kinds, func(k any) bool { return reflect.DeepEqual(k, any(named)) }) {
			return !hasFormerValue(published, former, present), nil
		}
	}
	return true, nil
}

// hasFormerValue reports whether published has the value of former somewhere where present has another value. A nil map
// stands for a missing object.
func hasFormerValue(published, former, present object) bool {
	for _, keys := range []object{former, present} {
		for key := range keys {
			before, after, now := former[key], present[key], published[key]
			if reflect.DeepEqual(before, after) {
				continue
			}
			beforeObject, isObject := before.(object)
			afterObject, isStillObject := after.(object)
			nowObject, isPublished := now.(object)
			if isObject && isStillObject && isPublished {
				if hasFormerValue(nowObject, beforeObject, afterObject) {
					return true
				}
			} else if reflect.DeepEqual(now, before) {
				return true
			}
		}
	}
	return false
}

// schemasOf returns the schemas of the served versions of a definition, with the types of package encoding/json.
func schemasOf(definition *unstructured.Unstructured) map[schema.GroupVersionKind]object {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	schemas := make(map[schema.GroupVersionKind]object)
	for _, each := range versions {
		version, _ := each.(object)
		name, _, _ := unstructured.NestedString(version, "name")
		isServed, _, _ := unstructured.NestedBool(version, "served")
		content, found, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if text, err := json.Marshal(content); err == nil && found && isServed {
			var decoded object
			_ = json.Unmarshal(text, &decoded)
			schemas[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = decoded
		}
	}
	return schemas
}

// hasFurtherFields reports whether a schema has a field that the former schema lacks, where the former schema drops
// unknown fields.
func hasFurtherFields(former, present object) bool {
	if former["x-kubernetes-preserve-unknown-fields"] == true {
		return false
	}
	properties, _ := present["properties"].(object)
	formerProperties, _ := former["properties"].(object)
	for name, each := range properties {
		before, isKnown := formerProperties[name].(object)
		now, _ := each.(object)
		if !isKnown && former["additionalProperties"] == nil || isKnown && hasFurtherFields(before, now) {
			return true
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		before, isKnown := former[inner].(object)
		now, _ := present[inner].(object)
		if isKnown && hasFurtherFields(before, now) {
			return true
		}
	}
	return false
}

// sampleOf returns a value with all fields of a schema. The value need not be valid. For the properties spec, an object
// with size, a number, and hosts, a list, it is {"spec": {"size": "x", "hosts": ["x"]}}.
func sampleOf(s object) any {
	properties, _ := s["properties"].(object)
	if len(properties) > 0 || s["type"] == "object" && s["additionalProperties"] == nil {
		sample := object{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[name].(object)
			sample[name] = sampleOf(property)
		}
		return sample
	}
	if inner, ok := s["additionalProperties"].(object); ok {
		return object{"x": sampleOf(inner)}
	}
	if inner, ok := s["items"].(object); ok {
		return []any{sampleOf(inner)}
	}
	return "x"
}
