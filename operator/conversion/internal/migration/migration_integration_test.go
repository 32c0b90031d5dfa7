package migration_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/migration"
	"github.com/yare-go/yare/yaretest"
)

// versionedKind is a kind in a real cluster, whose versions a test changes. All versions have the same fields.
type versionedKind struct {
	t         *testing.T
	cluster   *yaretest.Cluster
	client    *kube.Client
	resource  wire.Resource
	namespace string
	// schemas holds the schemas of versions that have other fields.
	schemas map[string]string
}

// newVersionedKind returns a kind without a definition. The definition goes after the test.
func newVersionedKind(t *testing.T, group string) *versionedKind {
	t.Helper()
	cluster := yaretest.Shared(t)
	k := &versionedKind{t: t, cluster: cluster, client: cluster.Client(t), resource: wire.Resource{Plural: "robots"}, namespace: cluster.Namespace(t)}
	k.resource.Group, k.resource.Kind, k.resource.Version = group, "Robot", "v1"
	t.Cleanup(func() {
		client := cluster.Client(t)
		for _, r := range []wire.Resource{definitionsResource()} {
			if err := kube.IgnoreNotFound(kube.Metadata(client, r, "").Delete(context.Background(), "robots."+group)); err != nil {
				t.Logf("left behind: %v", err)
			}
		}
	})
	return k
}

const robotSchema = `{"type":"object","properties":{
	"spec":{"type":"object","properties":{"size":{"type":"integer"},"paused":{"type":"boolean"},
		"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"image":{"type":"string"}}}}}},
	"status":{"type":"object","properties":{"ready":{"type":"integer"}}}}}`

// define applies a definition with these versions, such as "v1", "v2 served" or "v2 served stored", and waits until the
// server serves what the definition says.
func (k *versionedKind) define(versions ...string) {
	k.t.Helper()
	var list []string
	for _, v := range versions {
		list = append(list, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":%s},"subresources":{"status":{}}}`,
			strings.Fields(v)[0], strings.Contains(v, "served"), strings.Contains(v, "stored"), cmp.Or(k.schemas[strings.Fields(v)[0]], robotSchema)))
	}
	name := "robots." + k.resource.Group
	k.cluster.Kubectl(k.t, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},"spec":{"group":%q,"scope":"Namespaced",
		"names":{"plural":"robots","singular":"robot","kind":"Robot","listKind":"RobotList"},"versions":[%s]}}`, name, k.resource.Group, strings.Join(list, ",")), "apply", "--server-side", "-f", "-")
	k.cluster.Kubectl(k.t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+name)
	for _, v := range versions {
		isServed := strings.Contains(v, "served")
		yaretest.Eventually(k.t, func() error {
			_, err := kube.Dynamic(k.client, k.in(strings.Fields(v)[0]), k.namespace).Get(k.t.Context(), "none")
			if isServed == kube.IsNoResource(err) {
				return fmt.Errorf("%s: the server answers %w", v, err)
			}
			return nil
		})
	}
}

// in returns the resource in a version.
func (k *versionedKind) in(version string) wire.Resource {
	r := k.resource
	r.Version = version
	return r
}

// apply applies a robot with a spec, which is JSON, as a field manager.
func (k *versionedKind) apply(version, manager, name, spec string) error {
	content := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Robot","metadata":{"name":%q,"namespace":%q},"spec":%s}`, k.resource.Group, version, name, k.namespace, spec)
	return k.patch(version, manager, name, "", content)
}

// patch applies content as a field manager, without force.
func (k *versionedKind) patch(version, manager, name, subresource, content string) error {
	_, err := k.client.Do(k.t.Context(), &wire.Request{
		Verb: wire.VerbPatch, Resource: k.in(version), Namespace: k.namespace, Name: name, Subresource: subresource, ContentType: wire.ContentApply, Body: []byte(content),
		Query: map[string][]string{"fieldManager": {manager}},
	})
	return err
}

// mustApply applies a robot. An API server that has just got a definition converts by the former one for a moment.
func (k *versionedKind) mustApply(version, manager, name, spec string) {
	k.t.Helper()
	yaretest.Eventually(k.t, func() error { return k.apply(version, manager, name, spec) })
}

// object returns a robot.
func (k *versionedKind) object(version, name string) *unstructured.Unstructured {
	k.t.Helper()
	o, err := kube.Dynamic(k.client, k.in(version), k.namespace).Get(k.t.Context(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

// managers returns the entries of managedFields of a robot, in one line each.
func (k *versionedKind) managers(version, name string) (lines []string) {
	k.t.Helper()
	for _, e := range k.object(version, name).GetManagedFields() {
		raw := ""
		if e.FieldsV1 != nil {
			raw = string(e.FieldsV1.GetRawBytes())
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", e.Manager, e.Operation, strings.TrimPrefix(e.APIVersion, k.resource.Group+"/"), e.Subresource, raw))
	}
	slices.Sort(lines)
	return lines
}

// storedVersions returns status.storedVersions of the definition.
func (k *versionedKind) storedVersions() string {
	k.t.Helper()
	return k.cluster.Kubectl(k.t, "", "get", "crd", "robots."+k.resource.Group, "-o", "jsonpath={.status.storedVersions}")
}

// options returns the options of a migration by a program that stores objects in a version.
func (k *versionedKind) options(storage string, out *bytes.Buffer) *migration.Options {
	return &migration.Options{
		Kinds: []migration.Kind{{Resource: k.resource, StorageVersion: storage}}, Rate: 1000, SettleTime: time.Second, Out: out,
		Confirm: func(context.Context) error { return errors.New("nobody confirms") },
	}
}

// migrate migrates the robots, and returns the output.
func (k *versionedKind) migrate(storage string) string {
	k.t.Helper()
	var out bytes.Buffer
	if err := migration.Run(k.t.Context(), k.client, k.options(storage, &out)); err != nil {
		k.t.Fatalf("%v\n%s", err, &out)
	}
	return out.String()
}

func definitionsResource() wire.Resource {
	r := wire.Resource{Plural: "customresourcedefinitions", ClusterScoped: true}
	r.Group, r.Version, r.Kind = "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
	return r
}

// The rows A to E of docs/guide/versions.md, and back by one row each.
func TestRowsOfTheLifeOfAVersion(t *testing.T) {
	t.Parallel()
	k := newVersionedKind(t, "rows.example.com")
	// A
	k.define("v1 served stored")
	k.mustApply("v1", "operator", "a", `{"size":1,"paused":false,"parts":[{"name":"x","image":"x:1"}]}`)
	k.mustApply("v1", "user", "a", `{"parts":[{"name":"y","image":"y:1"}]}`)
	if err := k.patch("v1", "operator", "a", "status", fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Robot","metadata":{"name":"a","namespace":%q},"status":{"ready":1}}`, k.resource.Group, k.namespace)); err != nil {
		t.Fatal(err)
	}
	// B, back to A, and B again
	k.define("v1 served stored", "v2 served")
	k.mustApply("v2", "operator", "b", `{"size":2}`)
	var out bytes.Buffer
	back := k.options("v1", &out)
	back.RemovedVersion = "v2"
	if err := migration.Run(t.Context(), k.client, back); err != nil {
		t.Fatalf("from B to A: %v\n%s", err, &out)
	}
	// The definition of A differs in another field too. The command has left no owner that its apply conflicts with.
	k.schemas = map[string]string{"v1": strings.Replace(robotSchema, `"size":{`, `"size":{"description":"as of A",`, 1)}
	k.define("v1 served stored")
	k.schemas = nil
	k.mustApply("v1", "operator", "b", `{"size":3}`)
	if got := k.managers("v1", "b"); len(got) != 1 || !strings.HasPrefix(got[0], "operator Apply v1 ") {
		t.Errorf("after the way back from B to A: %q", got)
	}
	k.define("v1 served stored", "v2 served")
	k.mustApply("v2", "operator", "b", `{"size":2}`)
	k.migrate("v1")
	if got := k.storedVersions(); got != `["v1"]` {
		t.Errorf("in B the stored versions are %s", got)
	}
	// C, back to B, and C again
	k.define("v1 served", "v2 served stored")
	k.migrate("v2")
	if got := k.storedVersions(); got != `["v2"]` {
		t.Errorf("in C the stored versions are %s", got)
	}
	k.define("v1 served stored", "v2 served")
	k.migrate("v1")
	if got := k.storedVersions(); got != `["v1"]` {
		t.Errorf("back in B the stored versions are %s", got)
	}
	before := k.managers("v2", "a")
	version := k.object("v2", "a").GetResourceVersion()
	k.define("v1 served", "v2 served stored")
	output := k.migrate("v2")
	if !strings.Contains(output, "2 of 2 objects were written") || !strings.Contains(output, "status.storedVersions is now [v2]") {
		t.Errorf("the output is\n%s", output)
	}
	if got := k.managers("v2", "a"); !slices.Equal(got, before) {
		t.Errorf("the managers were\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(got, "\n"))
	}
	stored := k.object("v2", "a").GetResourceVersion()
	if stored == version {
		t.Error("the object was not stored anew")
	}
	k.migrate("v2")
	if again := k.object("v2", "a").GetResourceVersion(); again != stored {
		t.Error("an object that is stored in the storage version was stored again")
	}
	// D, back to C, and D again
	k.define("v1", "v2 served stored")
	k.define("v1 served", "v2 served stored")
	k.mustApply("v1", "operator", "a", `{"size":1,"paused":false,"parts":[{"name":"x","image":"x:1"}]}`)
	k.define("v1", "v2 served stored")
	if output = k.migrate("v2"); !strings.Contains(output, "managedFields of 1 objects") {
		t.Errorf("the output is\n%s", output)
	}
	after := k.managers("v2", "a")
	for i := range before {
		before[i] = strings.Replace(before[i], " v1 ", " v2 ", 1)
	}
	slices.Sort(before)
	if !slices.Equal(after, before) {
		t.Errorf("the managers should be\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	// E, back to D, and E again
	k.define("v2 served stored")
	k.define("v1", "v2 served stored")
	k.define("v2 served stored")
	// The operator owns what it owned: it removes a field and changes another one, and a second manager has a conflict.
	yaretest.Eventually(t, func() error { return k.apply("v2", "operator", "a", `{"size":5,"parts":[{"name":"x","image":"x:1"}]}`) })
	spec, _, _ := unstructured.NestedMap(k.object("v2", "a").Object, "spec")
	if text, _ := json.Marshal(spec); string(text) != `{"parts":[{"image":"x:1","name":"x"},{"image":"y:1","name":"y"}],"size":5}` {
		t.Errorf("the spec is %s", text)
	}
	if err := k.apply("v2", "other", "a", `{"size":6}`); !kube.IsApplyConflict(err) {
		t.Errorf("another manager: %v", err)
	}
	if err := k.apply("v2", "user", "a", `{}`); err != nil {
		t.Error(err)
	}
	parts, _, _ := unstructured.NestedSlice(k.object("v2", "a").Object, "spec", "parts")
	if len(parts) != 1 {
		t.Errorf("the part of the user stays: %v", parts)
	}
}

// What happens without the command: it shows that the steps of TestRowsOfTheLifeOfAVersion are what makes it pass.
func TestWithoutMigrate(t *testing.T) {
	t.Parallel()
	for name, isRewritten := range map[string]bool{"stored in v1": false, "managers of v1": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newVersionedKind(t, strings.ReplaceAll(name, " ", "-")+".without.example.com")
			k.define("v1 served stored")
			k.mustApply("v1", "operator", "a", `{"size":1}`)
			k.define("v1 served", "v2 served stored")
			if isRewritten {
				k.migrate("v2")
			} else {
				k.cluster.Kubectl(t, "", "patch", "crd", "robots."+k.resource.Group, "--subresource=status", "--type=merge", "-p", `{"status":{"storedVersions":["v2"]}}`)
			}
			k.define("v1", "v2 served stored")
			k.define("v2 served stored")
			yaretest.Eventually(t, func() error {
				_, err := kube.Dynamic(k.client, k.in("v2"), k.namespace).List(t.Context())
				if isRewritten == (err != nil) {
					return fmt.Errorf("the list of objects that are rewritten (%t) returned %w", isRewritten, err)
				}
				return nil
			})
			if err := k.apply("v2", "operator", "a", `{"size":2}`); err == nil {
				t.Error("an apply works, so the step of managedFields is not needed")
			} else {
				t.Log(err)
			}
		})
	}
}

// interceptor is a handler that calls a function before each request.
type interceptor struct {
	wire.Handler
	before func(r *wire.Request) error
}

func (i interceptor) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if err := i.before(r); err != nil {
		return nil, err
	}
	return i.Handler.Do(ctx, r)
}

// Objects that change, go or are replaced while the command runs, a definition that changes, and an end in between.
func TestMigrateWhileOthersWrite(t *testing.T) {
	t.Parallel()
	k := newVersionedKind(t, "writers.example.com")
	k.define("v1 served stored")
	for _, name := range []string{"changes", "goes", "is-replaced", "stays"} {
		k.mustApply("v1", "operator", name, `{"size":1}`)
	}
	k.define("v1 served", "v2 served stored")
	dynamic := kube.Dynamic(k.client, k.in("v2"), k.namespace)
	changes := 0
	run := func(before func(r *wire.Request) error) (string, error) {
		var out bytes.Buffer
		err := migration.Run(t.Context(), kube.NewClientFromHandler(interceptor{k.client, before}), k.options("v2", &out))
		return out.String(), err
	}
	// The command ends in between, and leaves the stored versions alone.
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	err := migration.Run(ctx, kube.NewClientFromHandler(interceptor{k.client, func(r *wire.Request) error {
		if r.Verb == wire.VerbPatch && r.Name == "is-replaced" {
			cancel()
		}
		return ctx.Err()
	}}), k.options("v2", &out))
	if err == nil || !strings.Contains(err.Error(), "2 of 4 objects were written") || !strings.Contains(err.Error(), "run it again") {
		t.Errorf("an end in between: %v\n%s", err, &out)
	}
	if got := k.storedVersions(); got != `["v1","v2"]` {
		t.Errorf("after an end in between the stored versions are %s", got)
	}
	// The definition changes.
	output, err := run(func(r *wire.Request) error {
		if r.Verb == wire.VerbPatch && r.Name == "stays" {
			k.cluster.Kubectl(t, "", "patch", "crd", "robots."+k.resource.Group, "--type=merge", "-p", `{"spec":{"names":{"shortNames":["rb"]}}}`)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "run the command again") || k.storedVersions() != `["v1","v2"]` {
		t.Errorf("a definition that changes: %v, %s\n%s", err, k.storedVersions(), output)
	}
	// An object cannot be written.
	output, err = run(func(r *wire.Request) error {
		if r.Verb == wire.VerbPatch && r.Name == "stays" {
			return errors.New("the robot is on fire")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "1 objects are left") || !strings.Contains(err.Error(), "/stays: the robot is on fire") || k.storedVersions() != `["v1","v2"]` {
		t.Errorf("an object that cannot be written: %v, %s\n%s", err, k.storedVersions(), output)
	}
	// Objects change, go and are replaced.
	output, err = run(func(r *wire.Request) error {
		if r.Verb != wire.VerbPatch {
			return nil
		}
		switch r.Name {
		case "changes":
			if changes++; changes <= 3 {
				return k.apply("v1", "user", "changes", fmt.Sprintf(`{"parts":[{"name":"p","image":"%d"}]}`, changes))
			}
		case "goes", "is-replaced":
			if err := kube.IgnoreNotFound(dynamic.Delete(t.Context(), r.Name)); err != nil {
				return err
			}
			if r.Name == "is-replaced" {
				return k.apply("v1", "user", r.Name, `{"size":9}`)
			}
		}
		return nil
	})
	if err != nil || k.storedVersions() != `["v2"]` || !strings.Contains(output, "2 of 4 objects were written") || !strings.Contains(output, "2 were gone") {
		t.Errorf("others write: %v, %s\n%s", err, k.storedVersions(), output)
	}
	if size, _, _ := unstructured.NestedInt64(k.object("v2", "is-replaced").Object, "spec", "size"); size != 9 {
		t.Errorf("the object that was made meanwhile has the size %d", size)
	}
}

// An incomplete object is left alone and named, and the stored versions stay. Annotations of versions that are not served
// go after a question, if they hold values.
func TestAnnotationsOfConversions(t *testing.T) {
	t.Parallel()
	k := newVersionedKind(t, "annotations.example.com")
	k.define("v1 served stored")
	for name, key := range map[string]string{"incomplete": "incomplete", "holds": "v1.0123456789abcdef", "served": "v2.0123456789abcdef"} {
		k.mustApply("v1", "operator", name, `{"size":1}`)
		k.cluster.Kubectl(t, "", "annotate", "robots.v1."+k.resource.Group, name, "-n", k.namespace, "versions.yare.dev/"+key+`=[{"path":"/spec/size"}]`)
	}
	k.define("v1 served", "v2 served stored")
	version := k.object("v2", "incomplete").GetResourceVersion()
	var out bytes.Buffer
	err := migration.Run(t.Context(), k.client, k.options("v2", &out))
	if err == nil || !strings.Contains(err.Error(), "1 objects are left") || !strings.Contains(err.Error(), k.namespace+"/incomplete has the annotation") || k.storedVersions() != `["v1","v2"]` {
		t.Errorf("an incomplete object: %v, %s\n%s", err, k.storedVersions(), &out)
	}
	if k.object("v2", "incomplete").GetResourceVersion() != version {
		t.Error("the incomplete object was written")
	}
	k.cluster.Kubectl(t, "", "annotate", "robots.v2."+k.resource.Group, "incomplete", "-n", k.namespace, "versions.yare.dev/incomplete-")
	k.migrate("v2")
	k.define("v1", "v2 served stored")
	// Nobody confirms.
	out.Reset()
	if err = migration.Run(t.Context(), k.client, k.options("v2", &out)); err == nil || !strings.Contains(err.Error(), "nobody confirms") || !strings.Contains(out.String(), k.namespace+"/holds: versions.yare.dev/v1.0123456789abcdef") {
		t.Errorf("an annotation that holds values: %v\n%s", err, &out)
	}
	if len(k.object("v2", "holds").GetAnnotations()) != 1 {
		t.Error("the annotation has gone without a confirmation")
	}
	options := k.options("v2", &out)
	options.Confirm = func(context.Context) error { return nil }
	if err = migration.Run(t.Context(), k.client, options); err != nil {
		t.Errorf("after a confirmation: %v\n%s", err, &out)
	}
	if a, b := k.object("v2", "holds").GetAnnotations(), k.object("v2", "served").GetAnnotations(); len(a) != 0 || len(b) != 1 {
		t.Errorf("the annotations are %v and %v", a, b)
	}
}

// scheduleConverter converts between hour and minute in v1, and schedule in v2.
type scheduleConverter struct{}

func (scheduleConverter) Convert(raw []byte, version string) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	group, _, _ := strings.Cut(object["apiVersion"].(string), "/")
	object["apiVersion"] = group + "/" + version
	spec, _ := object["spec"].(map[string]any)
	converted := map[string]any{}
	if schedule, ok := spec["schedule"].(string); ok && version == "v1" {
		minute, hour, _ := strings.Cut(schedule, " ")
		converted["minute"], converted["hour"] = minute, hour
	} else if version == "v2" && len(spec) > 0 {
		minute, _ := spec["minute"].(string)
		hour, _ := spec["hour"].(string)
		converted["schedule"] = cmp.Or(minute, "*") + " " + cmp.Or(hour, "*")
	}
	object["spec"] = converted
	return json.Marshal(object)
}

// The managers of fields that have another name in the new version own what their fields became. The server accepts their
// new field sets.
func TestManagersOfConvertedFields(t *testing.T) {
	t.Parallel()
	k := newVersionedKind(t, "clocks.example.com")
	schema := func(fields string) string {
		return `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{` + fields + `}}}}`
	}
	// The server does not convert, so v1 lets the fields of v2 pass.
	k.schemas = map[string]string{"v1": schema(`"hour":{"type":"string"},"minute":{"type":"string"}`), "v2": schema(`"schedule":{"type":"string"},"zone":{"type":"string"}`)}
	k.define("v1", "v2 served stored")
	k.mustApply("v2", "webhook", "a", `{"schedule":"30 3"}`)
	// The managers are those of an object that two managers have applied in v1.
	var entries []string
	for manager, field := range map[string]string{"hours": "hour", "minutes": "minute"} {
		entries = append(entries, fmt.Sprintf(`{"manager":%q,"operation":"Apply","apiVersion":"%s/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:%s":{}}}}`, manager, k.resource.Group, field))
	}
	k.cluster.Kubectl(t, "", "patch", "robots."+k.resource.Group, "a", "-n", k.namespace, "--type=merge", "-p", `{"metadata":{"managedFields":[`+strings.Join(entries, ",")+`]}}`)
	if got := k.managers("v2", "a"); len(got) != 2 || !strings.Contains(got[0], " v1 ") || !strings.Contains(got[1], " v1 ") {
		t.Fatalf("the managers are %q", got)
	}
	var out bytes.Buffer
	options := k.options("v2", &out)
	options.Kinds[0].Converter = migration.NewFieldConverter(scheduleConverter{})
	if err := migration.Run(t.Context(), k.client, options); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	want := []string{`hours Apply v2  {"f:spec":{"f:schedule":{}}}`, `minutes Apply v2  {"f:spec":{"f:schedule":{}}}`}
	if got := k.managers("v2", "a"); !slices.Equal(got, want) {
		t.Fatalf("the managers are %q", got)
	}
	k.define("v2 served stored")
	// The first manager gives the field up, and the second one keeps it.
	yaretest.Eventually(t, func() error { return k.apply("v2", "hours", "a", `{}`) })
	if schedule, _, _ := unstructured.NestedString(k.object("v2", "a").Object, "spec", "schedule"); schedule != "30 3" {
		t.Errorf("the schedule is %q", schedule)
	}
	k.mustApply("v2", "minutes", "a", `{"zone":"UTC"}`)
	if schedule, found, _ := unstructured.NestedString(k.object("v2", "a").Object, "spec", "schedule"); found {
		t.Errorf("nobody owns the schedule, which is %q", schedule)
	}
}

// What the command refuses before it writes anything.
func TestRefusals(t *testing.T) {
	t.Parallel()
	k := newVersionedKind(t, "refusals.example.com")
	refuse := func(options *migration.Options, want string) {
		t.Helper()
		if err := migration.Run(t.Context(), k.client, options); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("the error should contain %q: %v", want, err)
		}
	}
	var out bytes.Buffer
	refuse(k.options("v1", &out), "the cluster has no definition robots.refusals.example.com")
	k.define("v1 served stored", "v2 served")
	refuse(k.options("v2", &out), "stores objects in v1, and that of this program in v2")
	other := k.options("v1", &out)
	other.Kinds[0].Resource.Plural = "roboter"
	refuse(other, "under the plural robots")
	for version, want := range map[string]string{"v1": "are stored in v1", "v3": "no definition in the cluster has the version v3"} {
		removed := k.options("v1", &out)
		removed.RemovedVersion = version
		refuse(removed, want)
	}
	k.mustApply("v2", "operator", "a", `{"size":1}`)
	version := k.object("v1", "a").GetResourceVersion()
	dry := k.options("v1", &out)
	dry.DryRun, dry.RemovedVersion = true, "v2"
	if err := migration.Run(t.Context(), k.client, dry); err != nil || !strings.Contains(out.String(), "would write 1 objects") || k.object("v1", "a").GetResourceVersion() != version {
		t.Errorf("a dry run: %v\n%s", err, &out)
	}
}
