// Package guide does what a user does who has an operator in a module of their own: it runs the commands of
// docs/guide/webhooks.md and docs/guide/versions.md, and no others, on a real node. Other users work meanwhile. The audit log of
// the API server shows whether one of their calls has failed. The default tests leave the package out:
//
//	.ci/realnode/prepare && go test ./.ci/guide -timeout 60m -v
package guide

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

//go:embed lamps.go.txt
var source string

// release is a release of the operator.
type release struct {
	// alpha and v1 are what the release sets in the Definitions of the versions.
	alpha, v1 string
	parts     string
}

const (
	alphaController = "controller.New(reconcileAlpha)"
	v1Controller    = "controller.New(reconcile)"
	converter       = "conversion.Between(toV1, toAlpha)"
)

var (
	// versionReleases are the rows of docs/guide/versions.md.
	versionReleases = map[string]release{
		"a": {"Storage: true", "", alphaController},
		"b": {"Storage: true", "", alphaController + ", " + converter},
		"c": {"", "Storage: true", v1Controller + ", " + converter},
		"d": {"NotServed: true", "Storage: true", v1Controller + ", " + converter},
		"e": {"", "Storage: true", v1Controller},
	}
	webhookReleases = map[string]release{
		"none":     {"Storage: true", "", alphaController},
		"webhooks": {"Storage: true", "", alphaController + ", webhook.Validate(validate), webhook.Default(setDefaults)"},
	}
)

// world is a cluster with a real node, and the releases of an operator in a module of its own.
type world struct {
	*testing.T
	cluster *yaretest.Cluster
	// scratch is a folder. Its subfolder bin has kubectl, and its subfolder of a release has the program.
	scratch, auditLog, group string
	// images are the images of the releases.
	images map[string]string
	users  *kube.Client
	mu     sync.Mutex
	// watts holds the watts that each lamp must have.
	watts map[string]int64
}

// userName is the user of all calls that must not fail.
const userName = "alice"

func newWorld(t *testing.T, group string, releases map[string]release) *world {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, scratch: t.TempDir(), group: group, images: make(map[string]string), watts: make(map[string]int64)}
	w.auditLog = filepath.Join(w.scratch, "audit.log")
	module := filepath.Join(w.scratch, "lamps")
	w.must(os.MkdirAll(module, 0o755))
	w.run(module, "go mod init example.org/lamps && go mod edit -require=github.com/yare-go/yare@v0.0.0 -replace=github.com/yare-go/yare="+root+" -tool=github.com/yare-go/yare/cmd/yare")
	for name, r := range releases {
		// The program has the name of its folder, in the image too.
		w.must(os.MkdirAll(filepath.Join(module, name, "lamps"), 0o755))
		text := strings.NewReplacer("GROUP", group, ", ALPHA}", clause(r.alpha), ", V1}", clause(r.v1), "PARTS", r.parts).Replace(source)
		w.must(os.WriteFile(filepath.Join(module, name, "lamps", "main.go"), []byte(text), 0o600))
	}
	w.run(module, "go mod tidy && go build -o "+filepath.Join(w.scratch, "yare")+" github.com/yare-go/yare/cmd/yare")
	var files []string
	for name := range releases {
		w.run(module, fmt.Sprintf("go build -o %s ./%s/lamps", filepath.Join(w.scratch, name, "lamps"), name))
		file := filepath.Join(w.scratch, name+".tar")
		out := w.run(module, fmt.Sprintf("%s image -o %s --tag registry.example.com/lamps:%s ./%s/lamps", filepath.Join(w.scratch, "yare"), file, name, name))
		w.images[name] = strings.Fields(out)[0]
		files = append(files, file)
	}
	policy := filepath.Join(w.scratch, "policy.yaml")
	w.must(os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, resources: [{group: "+group+"}]}, {level: None}]\n"), 0o600))
	w.cluster = yaretest.New(t, yaretest.RealNode(files...), yaretest.APIServerArgs("--audit-policy-file="+policy, "--audit-log-path="+w.auditLog))
	w.must(os.MkdirAll(filepath.Join(w.scratch, "bin"), 0o755))
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %s kubectl \"$@\"\n", filepath.Join(w.scratch, "yare"))
	w.must(os.WriteFile(filepath.Join(w.scratch, "bin", "kubectl"), []byte(kubectl), 0o700))
	config := w.cluster.Config()
	config.Impersonate = kube.Impersonation{UserName: userName, Groups: []string{"system:masters"}}
	w.users, err = kube.NewClient(config)
	w.must(err)
	return w
}

// clause returns the end of a composite literal with fields, which may be none.
func clause(fields string) string {
	if fields == "" {
		return "}"
	}
	return ", " + fields + "}"
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run runs a command in a folder, and returns what it prints.
func (w *world) run(folder, command string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "bash", "-c", "set -euo pipefail\n"+command)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if w.cluster != nil {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+w.cluster.Kubeconfig())
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("%s: %v\n%s%s", command, err, out, errs.String())
	}
	return string(out)
}

// runFromPage runs a command of a release. The command must stand in a block of code of the page. program is the name of the
// program in the page.
func (w *world) runFromPage(page, program, release, command string) {
	w.Helper()
	content, err := os.ReadFile("../../docs/guide/" + page)
	w.must(err)
	if !strings.Contains(string(content), "\n"+command+"\n") {
		w.Fatalf("%s lacks the command %s", page, command)
	}
	for _, image := range []string{"registry.example.com/cronjob@sha256:…", "…"} {
		command = strings.Replace(command, "--image "+image+" ", "--image "+w.images[release]+" ", 1)
	}
	command = strings.ReplaceAll(command, program, "lamps")
	w.Logf("+ %s: %s", release, command)
	path := filepath.Join(w.scratch, release) + ":" + filepath.Join(w.scratch, "bin")
	out := w.run(w.scratch, "export PATH="+path+":$PATH\n"+command)
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "serverside-applied") {
			w.Log("  " + strings.TrimSuffix(line, "\n"))
		}
	}
}

// lamps returns the lamps in a version, for users.
func (w *world) lamps(version string) kube.API[unstructured.Unstructured] {
	return kube.Dynamic(w.users, wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: w.group, Version: version, Kind: "Lamp"}, Plural: "lamps"}, "default")
}

// waitUntilServed waits until the API server serves a version, as the administrator.
func (w *world) waitUntilServed(version string) {
	w.Helper()
	api := w.lamps(version).For(w.cluster.Client(w), "default")
	yaretest.Eventually(w, func() error { _, err := api.List(w.Context()); return err })
}

// objects is the number of lamps.
const objects = 1000

func name(i int) string { return fmt.Sprint("lamp-", i) }

// newLamp returns a lamp in a version.
func newLamp(version, name string, watts int64) *unstructured.Unstructured {
	spec := map[string]any{"colour": "red-dark", "watts": watts}
	if version == "v1" {
		spec = map[string]any{"hue": "red", "shade": "dark", "watts": watts}
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}}
}

// createLamps creates all lamps in a version.
func (w *world) createLamps(version string) {
	w.Helper()
	api := w.lamps(version)
	for i := range objects {
		_, err := api.Create(w.Context(), newLamp(version, name(i), int64(1+i)))
		w.must(err)
		w.watts[name(i)] = int64(1 + i)
	}
}

// startUsers starts four users who work in a version until end is called. The user k works on the lamps first+k, first+k+8,
// first+k+16 and so on.
func (w *world) startUsers(version string, first int) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var working sync.WaitGroup
	api := w.lamps(version)
	for user := range 4 {
		working.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				i := (first + user + 8*n) % objects
				watts := int64(n + 1000)
				var err error
				switch n % 4 {
				case 0:
					_, err = api.Apply(context.WithoutCancel(ctx), newLamp(version, name(i), watts), kube.FieldManager(fmt.Sprint(version, "-", user)))
				case 1:
					_, err = api.Patch(context.WithoutCancel(ctx), name(i), kube.MergePatch(map[string]any{"spec": map[string]any{"watts": watts}}))
				case 2:
					_, err = api.Get(context.WithoutCancel(ctx), name(i))
				default:
					_, err = api.List(context.WithoutCancel(ctx))
				}
				if err != nil {
					w.Errorf("%s, a user of %s: %v", time.Now().Format(time.TimeOnly), version, err)
				} else if n%4 < 2 {
					w.mu.Lock()
					w.watts[name(i)] = watts
					w.mu.Unlock()
				}
				select {
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	end = sync.OnceFunc(func() { cancel(); working.Wait() })
	w.Cleanup(end)
	return end
}

// mustFit compares the watts of all lamps with those that they must have. It must not be called while users work.
func (w *world) mustFit(versions ...string) {
	w.Helper()
	for _, version := range versions {
		all, err := w.lamps(version).List(w.Context())
		w.must(err)
		if len(all) != objects {
			w.Errorf("%d of %d lamps in %s", len(all), objects, version)
		}
		for _, o := range all {
			if want := newLamp(version, o.GetName(), w.watts[o.GetName()]); fmt.Sprint(o.Object["spec"]) != fmt.Sprint(want.Object["spec"]) {
				w.Errorf("%s in %s is %v, want %v", o.GetName(), version, o.Object["spec"], want.Object["spec"])
			}
		}
		w.Logf("%d lamps are right in %s", len(all), version)
	}
}

// mustHaveNoFailedCall fails the test for each call of a user that has failed, by the audit log.
func (w *world) mustHaveNoFailedCall() {
	w.Helper()
	calls, failed := 0, 0
	count := func() error {
		file, err := os.Open(w.auditLog)
		if err != nil {
			return err
		}
		defer file.Close()
		calls, failed = 0, 0
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var event struct {
				Verb, RequestURI string
				ImpersonatedUser struct{ Username string }
				ResponseStatus   struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				return err
			}
			if event.ImpersonatedUser.Username != userName {
				continue
			}
			if calls++; event.ResponseStatus.Code >= 400 {
				if failed++; failed <= 10 {
					w.Errorf("%s %s: %d %s", event.Verb, event.RequestURI, event.ResponseStatus.Code, event.ResponseStatus.Message)
				}
			}
		}
		if calls == 0 {
			return errors.New("the audit log has no call of a user")
		}
		return nil
	}
	yaretest.Eventually(w, count)
	w.Logf("the audit log has %d calls of users, %d have failed", calls, failed)
}

// A kind goes from v1alpha1 to v1 by the commands of versions.md, to row E, and one row back.
func TestVersionsPage(t *testing.T) {
	w := newWorld(t, "versions.example.org", versionReleases)
	const (
		page    = "versions.md"
		apply   = "webapp manifests --image … --check | kubectl apply --server-side -f -"
		first   = "webapp manifests --image … --without-definitions | kubectl apply --server-side -f -"
		rollout = "kubectl rollout status --namespace webapp-system deployment/webapp"
		dryRun  = "webapp migrate --dry-run"
		migrate = "webapp migrate"
	)
	run := func(release string, commands ...string) {
		t.Helper()
		for _, command := range commands {
			w.runFromPage(page, "webapp", release, command)
		}
	}
	run("a", apply, rollout)
	w.waitUntilServed("v1alpha1")
	w.createLamps("v1alpha1")
	alpha := w.startUsers("v1alpha1", 0)
	run("b", first, rollout, apply, rollout)
	w.waitUntilServed("v1")
	v1 := w.startUsers("v1", 4)
	run("c", apply, rollout, dryRun, migrate)
	alpha()
	v1()
	w.mustFit("v1alpha1", "v1")
	v1 = w.startUsers("v1", 4)
	run("d", apply, rollout, migrate)
	run("e", apply, rollout)
	v1()
	w.mustFit("v1")
	v1 = w.startUsers("v1", 4)
	run("d", apply, rollout) // the rollback by one row
	v1()
	w.mustFit("v1")
	w.mustHaveNoFailedCall()
}

// An operator gets webhooks by the commands of webhooks.md, loses them in a rollback, and gets them again.
func TestWebhooksPage(t *testing.T) {
	w := newWorld(t, "webhooks.example.org", webhookReleases)
	const (
		page    = "webhooks.md"
		apply   = "cronjob manifests --image registry.example.com/cronjob@sha256:… | kubectl apply --server-side -f -"
		configs = "kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l app.kubernetes.io/instance=cronjob,manifests.yare.dev/namespace=cronjob-system"
		rollout = "kubectl rollout status --namespace webapp-system deployment/webapp"
	)
	run := func(release string, commands ...string) {
		t.Helper()
		for _, command := range commands {
			w.runFromPage(page, "cronjob", release, command)
		}
		w.runFromPage("versions.md", "webapp", release, rollout)
	}
	admin := w.lamps("v1alpha1").For(w.cluster.Client(t), "default")
	// checkWebhooks returns a function. If want is true, it returns an error unless the API server refuses a lamp and completes
	// another one. If want is false, it returns an error unless the API server does neither.
	checkWebhooks := func(want bool) func() error {
		return func() error {
			neon := newLamp("v1alpha1", "probe", 100)
			neon.Object["spec"] = map[string]any{"colour": "neon", "watts": int64(100)}
			_, err := admin.Create(t.Context(), neon, kube.DryRun())
			if kube.IsInvalid(err) != want || err != nil && !want {
				return fmt.Errorf("a neon lamp of 100 watts: %v", err)
			}
			plain := newLamp("v1alpha1", "probe", 100)
			plain.Object["spec"] = map[string]any{"watts": int64(100)}
			o, err := admin.Create(t.Context(), plain, kube.DryRun())
			if err != nil {
				return err
			}
			if colour, _, _ := unstructured.NestedString(o.Object, "spec", "colour"); (colour == "white") != want {
				return fmt.Errorf("the colour of a lamp without one is %q", colour)
			}
			return nil
		}
	}
	run("none", apply)
	w.waitUntilServed("v1alpha1")
	w.createLamps("v1alpha1")
	end := w.startUsers("v1alpha1", 0)
	run("webhooks", apply)
	yaretest.Eventually(t, checkWebhooks(true))
	t.Log("the API server refuses and completes lamps")
	run("none", configs, apply)
	w.must(checkWebhooks(false)())
	run("webhooks", apply)
	yaretest.Eventually(t, checkWebhooks(true))
	end()
	w.mustFit("v1alpha1")
	w.mustHaveNoFailedCall()
}
