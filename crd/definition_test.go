package crd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/crd/internal/elsewhere"
	"github.com/yare-go/yare/kube"
	"sigs.k8s.io/yaml"
)

func typeOf[T any, P kube.ObjectOf[T]](t *testing.T) kube.Type {
	t.Helper()
	of, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func must[T any, P kube.DefinedObjectOf[T]](t *testing.T) *crd.CustomResourceDefinition {
	t.Helper()
	c, err := crd.Of[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// all returns the definitions of the resources of these tests.
func all(t *testing.T) []*crd.CustomResourceDefinition {
	t.Helper()
	crds, err := crd.From(
		typeOf[Book](t), typeOf[Member](t), typeOf[Echo](t), typeOf[MyService](t), typeOf[WebApp](t),
		typeOf[Certificate](t), typeOf[Plant](t), typeOf[OldPlant](t), typeOf[OldestPlant](t), typeOf[Book](t),
	)
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := crd.WriteYAML(&text, must[WebApp](t)); err != nil {
		t.Fatal(err)
	}
	got := fromYAML(t, strings.TrimPrefix(text.String(), "---\n"))
	version := got.(map[string]any)["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	status := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["status"]
	// TestConditions looks at them.
	delete(status.(map[string]any)["properties"].(map[string]any), "conditions")
	want := fromYAML(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webapps.example.com, labels: {team: web}, annotations: {helm.sh/resource-policy: keep}}
spec:
  group: example.com
  names: {kind: WebApp, listKind: WebAppList, plural: webapps, singular: webapp, shortNames: [wa], categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.availableReplicas}
    selectableFields: [{jsonPath: .spec.image}]
    additionalPrinterColumns:
    - {name: Image, type: string, jsonPath: .spec.image, description: Image is the container image to run.}
    - {name: Available, type: integer, jsonPath: .status.availableReplicas, description: AvailableReplicas is how many pods serve.}
    - {name: Ready, type: boolean, jsonPath: .status.ready, description: Ready is true when as many pods serve as should run.}
    - {name: Why, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].reason', priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: WebApp is a web application.
        required: [spec]
        properties:
          apiVersion: {type: string, description: 'The group and version that this object is written in, such as example.com/v1.'}
          kind: {type: string, description: What this object is. It cannot be changed.}
          metadata: {type: object}
          spec:
            type: object
            description: WebAppSpec is the desired state of the application.
            required: [image, replicas]
            properties:
              image: {type: string, minLength: 1, description: Image is the container image to run.}
              replicas: {type: integer, format: int32, minimum: 0, description: Replicas is how many pods should run.}
          status:
            type: object
            description: WebAppStatus is the observed state.
            required: [availableReplicas, ready]
            properties:
              availableReplicas: {type: integer, format: int32, description: AvailableReplicas is how many pods serve.}
              ready: {type: boolean, description: Ready is true when as many pods serve as should run.}
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
}

func TestWrappedType(t *testing.T) {
	t.Parallel()
	c := must[Certificate](t)
	if c.Spec.Scope != "Cluster" {
		t.Errorf("scope %s", c.Spec.Scope)
	}
	root := c.Spec.Versions[0].Schema.OpenAPIV3Schema
	if got := c.Spec.Versions[0].Subresources; got == nil || got.Status == nil {
		t.Error("no status subresource")
	}
	if len(root.Required) != 0 {
		t.Errorf("required %v, want none: the tag of spec has omitempty", root.Required)
	}
	if want := "Certificate wraps a type that has no Definition."; root.Description != want {
		t.Errorf("description %q", root.Description)
	}
	if root.Properties["status"].Properties["notAfter"].Format != "date-time" {
		t.Error("status.notAfter is no time")
	}
}

func TestNoStatus(t *testing.T) {
	t.Parallel()
	v := must[Book](t).Spec.Versions[0]
	if v.Subresources != nil || v.Schema.OpenAPIV3Schema.Properties["status"] != nil {
		t.Error("a type without a status has one")
	}
	if v.Columns != nil {
		t.Errorf("columns %v, want none", v.Columns)
	}
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	root := must[Plant](t).Spec.Versions[0].Schema.OpenAPIV3Schema
	spec := root.Properties["spec"]
	for _, tc := range []struct {
		what, got, want string
	}{
		{"the alias", root.Description, "Plant grows."},
		{"the type", spec.Description, "PlantSpec has one of each.\n\nA second paragraph of two lines, about PlantStatus"},
		{"a field of an embedded struct", spec.Properties["owner"].Description, "Owner is whom to ask."},
		{"the type of a field", spec.Properties["phase"].Description, "Phase is a step in a life.\n\n\tBegin, End"},
		{"the field", spec.Properties["next"].Description, "Next overrules the comment of its type. There are two:\n- the first, long\n- the second"},
		{"the end of the line", spec.Properties["trailing"].Description, "is documented at the end of the line"},
		{"a struct without a name", spec.Properties["nameless"].Properties["depth"].Description, "Depth is within a struct without a name."},
		{"the items", spec.Properties["ports"].Items.Description, "Port is a port."},
		{"another package", spec.Properties["template"].Description, ""},
		{"no comment", spec.Properties["code"].Description, ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, tc.got, tc.want)
		}
	}
}

func TestSourceMustHoldTheTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"empty", fstest.MapFS{}, "no Go file"},
		{"another file", fstest.MapFS{"a.go": {Data: []byte("package a")}}, "BookSpec: the Source of the Definition does not hold"},
		{"no Go", fstest.MapFS{"a.go": {Data: []byte("func")}}, "a.go:1:1"},
	} {
		of := typeOf[Book](t)
		definition := *of.Definition
		definition.Source = tc.files
		of.Definition = &definition
		if _, err := crd.From(of); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error lacks %q: %v", tc.name, tc.want, err)
		}
	}
}

func TestFromMergesVersions(t *testing.T) {
	t.Parallel()
	crds := all(t)
	var names []string
	for _, c := range crds {
		names = append(names, c.Metadata.Name)
	}
	if diff := cmp.Diff([]string{
		"books.example.technosophos.com", "certificates.certs.example.com", "echoes.example.com", "members.helloworld.apimeister.com",
		"myservices.example.com", "plants.plants.example.com", "webapps.example.com",
	}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	versions := crds[5].Spec.Versions
	if len(versions) != 3 || !versions[1].Served || versions[2].Served || versions[0].Name != "v1" || !versions[0].Storage || versions[1].Storage {
		t.Fatalf("the versions of plants: %+v", versions)
	}
	if !versions[1].Deprecated || versions[1].DeprecationWarning == "" || versions[0].Deprecated {
		t.Error("v1beta1 must be deprecated, and v1 not")
	}
}

func TestFromStorage(t *testing.T) {
	t.Parallel()
	old, now := typeOf[OldPlant](t), typeOf[Plant](t)
	definition := *old.Definition
	definition.Storage = true
	old.Definition = &definition
	crds, err := crd.From(now, old)
	if err != nil {
		t.Fatal(err)
	}
	if v := crds[0].Spec.Versions; v[0].Storage || !v[1].Storage {
		t.Error("the version that says Storage is not the stored one")
	}
	// A version that is not served is not stored by itself.
	next := *now.Definition
	next.NotServed = true
	definition.Storage = false
	hidden := now
	hidden.Definition = &next
	if crds, err = crd.From(hidden, old); err != nil {
		t.Fatal(err)
	}
	if v := crds[0].Spec.Versions; v[0].Storage || !v[1].Storage {
		t.Error("the version that is not served is the stored one")
	}
	definition.Storage = true
	other := *now.Definition
	other.Storage = true
	now.Definition = &other
	wantError(t, "both set Storage", now, old)
}

func TestFromConflicts(t *testing.T) {
	t.Parallel()
	change := func(of kube.Type, edit func(*kube.Definition)) kube.Type {
		definition := *of.Definition
		edit(&definition)
		of.Definition = &definition
		of.Resource.Plural, of.Resource.ClusterScoped = definition.Plural, definition.ClusterScoped
		of.Resource.Version, of.Resource.Kind = definition.Version, definition.Kind
		if of.Resource.Plural == "" {
			of.Resource.Plural = "plants"
		}
		return of
	}
	now, old := typeOf[Plant](t), typeOf[OldPlant](t)
	both := "the custom resource of crd_test.PlantSpec and the custom resource of crd_test.OldPlantSpec"
	wantError(t, both+" are versions of one kind Plant, but differ in Plural: plants and flora",
		now, change(old, func(d *kube.Definition) { d.Plural = "flora" }))
	wantError(t, "differ in scope: Namespaced and Cluster",
		now, change(old, func(d *kube.Definition) { d.ClusterScoped = true }))
	wantError(t, "differ in ShortNames: [p] and [q]",
		change(now, func(d *kube.Definition) { d.ShortNames = []string{"p"} }),
		change(old, func(d *kube.Definition) { d.ShortNames = []string{"q"} }))
	wantError(t, both+" are both version v1",
		now, change(old, func(d *kube.Definition) { d.Version = "v1" }))
	wantError(t, "plants.plants.example.com is the name of both",
		now, change(old, func(d *kube.Definition) { d.Kind = "Flower" }))
	wantError(t, `annotation a="c" is "b" in another version`,
		change(now, func(d *kube.Definition) { d.Annotations = map[string]string{"a": "b"} }),
		change(old, func(d *kube.Definition) { d.Annotations = map[string]string{"a": "c"} }))
	wantError(t, "has no Definition", kube.Type{Go: now.Go, Resource: now.Resource})
}

func wantError(t *testing.T, want string, types ...kube.Type) {
	t.Helper()
	if _, err := crd.From(types...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error lacks %q: %v", want, err)
	}
}

// The output depends on the types only, and both forms have the same content.
func TestWrite(t *testing.T) {
	t.Parallel()
	var first, second, asJSON bytes.Buffer
	if err := errors.Join(crd.WriteYAML(&first, all(t)...), crd.WriteYAML(&second, all(t)...), crd.WriteJSON(&asJSON, all(t)...)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two writes differ")
	}
	for _, never := range []string{"creationTimestamp: null", "\nstatus:"} {
		if strings.Contains(first.String(), never) {
			t.Errorf("the YAML has %q", never)
		}
	}
	documents := strings.Split(strings.TrimPrefix(first.String(), "---\n"), "\n---\n")
	decoder := json.NewDecoder(&asJSON)
	for _, document := range documents {
		var a, b crd.CustomResourceDefinition
		if err := errors.Join(yaml.UnmarshalStrict([]byte(document), &a), decoder.Decode(&b)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asAny(t, a), asAny(t, b)); diff != "" {
			t.Errorf("%s (-yaml +json):\n%s", a.Metadata.Name, diff)
		}
	}
	if err := crd.WriteYAML(broken{}, all(t)...); err == nil || !strings.Contains(err.Error(), "books.example.technosophos.com") {
		t.Errorf("writing to a broken pipe: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

type routeSpec struct {
	Hostnames []string `json:"hostnames,omitempty"`
}

func (routeSpec) Definition() kube.Definition {
	return kube.Definition{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute", Foreign: true}
}

// A definition of another project is for tests only. A group of the Kubernetes community, in
// which servers ask for an approval, is no error then.
func TestForeignDefinition(t *testing.T) {
	t.Parallel()
	d := must[kube.CustomResource[routeSpec, kube.None]](t)
	if got := d.Metadata.Annotations["api-approved.kubernetes.io"]; !strings.HasPrefix(got, "unapproved") {
		t.Errorf("the approval is %q", got)
	}
	own := typeOf[kube.CustomResource[routeSpec, kube.None]](t)
	definition := *own.Definition
	definition.Annotations = map[string]string{"api-approved.kubernetes.io": "https://example.com/approval"}
	own.Definition = &definition
	crds, err := crd.From(own)
	if err != nil || crds[0].Metadata.Annotations["api-approved.kubernetes.io"] != "https://example.com/approval" {
		t.Errorf("an approval is not kept: %v", err)
	}
	definition.Annotations, definition.Foreign = nil, false
	own.Definition = &definition
	wantError(t, "custom resource of crd_test.routeSpec", own)
	wantError(t, "set Foreign in the Definition if another project defines the kind", own)
}

type farSpec struct {
	Far  elsewhere.Part             `json:"far"`
	Kind elsewhere.Kind             `json:"kind"`
	Of   elsewhere.Generic[int32]   `json:"of"`
	Name struct{ elsewhere.Common } `json:"name"`
}

func (farSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Far", OtherSources: map[string]fs.FS{
		"github.com/yare-go/yare/crd/internal/elsewhere": elsewhere.Source,
	}}
}

// Types of several packages have descriptions, and positions in errors.
func TestOtherSources(t *testing.T) {
	t.Parallel()
	spec := must[kube.CustomResource[farSpec, kube.None]](t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for _, tc := range []struct{ what, got, want string }{
		{"a type", spec.Properties["far"].Description, "Part is a part."},
		{"a field", spec.Properties["far"].Properties["size"].Description, "Size is its size."},
		{"a named string", spec.Properties["kind"].Description, "Kind is a kind."},
		{"a field of a generic type", spec.Properties["of"].Properties["value"].Description, "Value is any."},
		{"a field of an embedded type", spec.Properties["name"].Properties["owner"].Description, "Owner is whom to ask."},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, tc.got, tc.want)
		}
	}
	of := typeOf[kube.CustomResource[farSpec, kube.None]](t)
	definition := *of.Definition
	of.Definition = &definition
	definition.OtherSources = map[string]fs.FS{"example.com/none": elsewhere.Source}
	wantError(t, `the custom resource of crd_test.farSpec: its Definition's OtherSources["example.com/none"]: no type of the resource`, of)
	definition.OtherSources = map[string]fs.FS{"github.com/yare-go/yare/crd/internal/elsewhere": fstest.MapFS{"a.go": {Data: []byte("package elsewhere")}}}
	wantError(t, `elsewhere.Part: the Definition's OtherSources["github.com/yare-go/yare/crd/internal/elsewhere"] does not hold the file`, of)
	wantError(t, "elsewhere.go:23: elsewhere.Wrong.Size: the tag crd:", typeOf[kube.CustomResource[wrongFarSpec, kube.None]](t))
}

type wrongFarSpec struct {
	Wrong elsewhere.Wrong `json:"wrong"`
}

func (wrongFarSpec) Definition() kube.Definition { return farSpec{}.Definition() }

// Descriptions were taken from tests, and from other packages with types of the same name.
func TestDescriptionsOfOtherPackages(t *testing.T) {
	t.Parallel()
	text := func(pkg, comment string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package " + pkg + "\n\n// " + comment + "\ntype routeSpec struct{}\n")}
	}
	own := typeOf[kube.CustomResource[routeSpec, kube.None]](t)
	definition := *own.Definition
	own.Definition = &definition
	for name, source := range map[string]fstest.MapFS{
		"another package in the folder":     {"a.go": text("main", "Wrong."), "b.go": text("crd_test", "Right.")},
		"another package in a folder below": {"a/a.go": text("a", "Wrong."), "b.go": text("crd_test", "Right.")},
		"a package of that name elsewhere":  {"b.go": text("crd_test", "Right."), "c/a.go": &fstest.MapFile{Data: []byte("package crd_test\n\n// Wrong.\ntype other struct{}\n")}},
	} {
		definition.Source = source
		crds, err := crd.From(own)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Description; got != "Right." {
			t.Errorf("%s: the description is %q", name, got)
		}
	}
}
