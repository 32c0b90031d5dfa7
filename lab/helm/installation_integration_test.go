package helm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/lab/helm/internal/site"
	"github.com/yare-go/yare/yaretest"
)

// cronJobSite is a site on which the program CronJob is installed in several ways.
type cronJobSite struct {
	*site.Site
	t      *testing.T
	client *kube.Client
	// program and chart are the program and its chart.
	program, chart string
	// next and nextChart are those of the next release, whose definition has one more field and one more column.
	next, nextChart string
	runs            int
}

// manifests returns the arguments of the command manifests, with further flags.
func (s *cronJobSite) manifests(flags ...string) []string {
	return append([]string{"manifests", "--image", site.Image, "--namespace", site.Namespace, "--name-prefix", site.Release}, flags...)
}

// apply applies what the command manifests prints, and returns it.
func (s *cronJobSite) apply(flags ...string) string {
	s.t.Helper()
	stream := site.Run(s.t, s.program, s.manifests(flags...)...)
	s.Kubectl(s.t, stream, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return stream
}

// mustHaveNote fails the test unless the definition has the field of the next release, and then users of both versions see what
// is in the field. A release without the field drops it.
func (s *cronJobSite) mustHaveNote(want bool) {
	s.t.Helper()
	wanted, columns := "", 0
	if want {
		wanted, columns = "by hand", 1
	}
	const path = "jsonpath={.spec.note}"
	if note := s.Kubectl(s.t, "", "patch", "cronjobs.v1.batch.tutorial.example.com", "in-v1", "--type=merge", "-p", `{"spec":{"note":"by hand"}}`, "-o", path); note != wanted {
		s.t.Errorf("the field has the value %q, want %q", note, wanted)
	}
	if note := s.Kubectl(s.t, "", "get", "cronjobs.v2.batch.tutorial.example.com", "in-v1", "-o", path); note != wanted {
		s.t.Errorf("in v2 the field has the value %q, want %q", note, wanted)
	}
	if table := s.Kubectl(s.t, "", "get", "cronjobs.v1.batch.tutorial.example.com"); strings.Count(table, "NOTE") != columns {
		s.t.Errorf("the table has another number of columns NOTE than %d:\n%s", columns, table)
	}
}

// deleteAll deletes all objects of a stream at once, and then those of first as soon as the others have begun: a tool of GitOps
// deletes in an order of its own.
func (s *cronJobSite) deleteAll(stream string, isFirst func(kind string) bool) {
	s.t.Helper()
	var all, first []*wire.Request
	for _, o := range site.Parse(s.t, stream) {
		if o["kind"] == "Namespace" {
			continue
		}
		metadata := o["metadata"].(map[string]any)
		name, kind := metadata["name"].(string), o["kind"].(string)
		own, _ := metadata["namespace"].(string)
		r := &wire.Request{Verb: wire.VerbDelete, Namespace: own, Name: name, Body: []byte(`{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground"}`)}
		r.Resource.Group, r.Resource.Version, _ = strings.Cut(o["apiVersion"].(string), "/")
		if r.Resource.Version == "" {
			r.Resource.Group, r.Resource.Version = "", r.Resource.Group
		}
		r.Resource.Kind, r.Resource.Plural = kind, pluralOf(kind)
		if isFirst != nil && isFirst(kind) {
			first = append(first, r)
			continue
		}
		all = append(all, r)
	}
	for _, requests := range [][]*wire.Request{first, all} {
		var running sync.WaitGroup
		for _, r := range requests {
			running.Go(func() {
				if _, err := s.client.Do(s.t.Context(), r); kube.IgnoreNotFound(err) != nil {
					s.t.Error(err)
				}
			})
		}
		running.Wait()
	}
}

// pluralOf returns the plural of a kind that the command manifests prints.
func pluralOf(kind string) string {
	lower := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(lower, "y"); ok {
		return stem + "ies"
	}
	return lower + "s"
}

// helm returns a function that runs a version of Helm, which it builds.
func (s *cronJobSite) helm(version string) func(args ...string) {
	s.t.Helper()
	binary, home := filepath.Join(s.t.TempDir(), "helm"), s.t.TempDir()
	// By these flags Helm shares its compiled packages with the control plane.
	build := exec.CommandContext(s.t.Context(), "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-o", binary, "helm.sh/helm/"+version+"/cmd/helm")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build Helm: %v\n%s", err, said)
	}
	return func(args ...string) {
		s.t.Helper()
		cmd := exec.CommandContext(s.t.Context(), binary, append(args, "--namespace", site.Namespace)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		if said, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("helm %s: %v\n%s", args[0], err, said)
		}
	}
}

// keepsDefinition removes an installation while objects exist, so that the definition stays with them. administration.md has what works
// then, and the command that makes all work in the stored version, before the removal and after it. It reports whether all is so.
func (s *cronJobSite) keepsDefinition(helm func(args ...string)) bool {
	s.t.Helper()
	const v1, v2 = "cronjobs.v1.batch.tutorial.example.com", "cronjobs.v2.batch.tutorial.example.com"
	inNamespace := func(users, object string) string {
		return strings.Replace(object, "namespace: default", "namespace: "+users, 1)
	}
	install := func(users ...string) {
		helm("install", site.Release, s.chart, "--create-namespace")
		s.Start(s.program)
		s.MustServe()
		for _, each := range users {
			s.Kubectl(s.t, "", "create", "namespace", each)
			for _, version := range []string{"v1", "v2"} {
				s.Kubectl(s.t, inNamespace(each, site.CronJob(version, "in-"+version, "5 * * * *")), "apply", "--server-side", "-f", "-")
			}
		}
	}
	uninstall := func() {
		helm("uninstall", site.Release)
		s.End()
	}
	// migrate runs the command of the page, which may leave these objects.
	migrate := func(left ...string) {
		s.t.Helper()
		cmd := exec.CommandContext(s.t.Context(), s.program, "migrate", "--remove-version", "v2")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
		said, err := cmd.CombinedOutput()
		if (err != nil) != (len(left) > 0) || slices.ContainsFunc(left, func(name string) bool { return !strings.Contains(string(said), name) }) {
			s.t.Errorf("migrate, which leaves %v: %v\n%s", left, err, said)
		}
	}
	mustFail := func(want, stdin string, args ...string) {
		s.t.Helper()
		if _, stderr, err := s.TryKubectl(s.t, stdin, args...); err == nil || !strings.Contains(stderr, want) {
			s.t.Errorf("%v: %v, %s, without %q", args, err, stderr, want)
		}
	}
	end := func(users string) {
		s.Kubectl(s.t, "", "delete", "namespace", users, "--ignore-not-found", "--timeout=60s")
	}
	// applied is what a user who has used v2 applies in v1 now.
	applied := func(users string) (string, []string) {
		return inNamespace(users, site.CronJob("v1", "in-v2", "8 * * * *")), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}
	}

	install("first", "second")
	s.Kubectl(s.t, "", "create", "namespace", "empty")
	uninstall()
	s.MustLeaveNothing("in-v1", "in-v2")
	end("empty")
	mustFail(`service "one" not found`, "", "get", v2, "in-v1", "--namespace", "first")
	object, apply := applied("first")
	mustFail(`service "one" not found`, object, apply...)
	s.Kubectl(s.t, "", "delete", "namespace", "first", "--wait=false")
	yaretest.Eventually(s.t, func() error {
		conditions := s.Kubectl(s.t, "", "get", "namespace", "first", "-o", "jsonpath={.status.conditions}")
		if !strings.Contains(conditions, "conversion webhook") {
			return errors.New("the namespace has the conditions " + conditions)
		}
		return nil
	})
	migrate("second/in-v2")
	end("first")
	object, apply = applied("second")
	mustFail(`service "one" not found`, object, apply...)
	s.Kubectl(s.t, "", "patch", v1, "in-v2", "--namespace", "second", "--type=json", "--patch", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	s.Kubectl(s.t, object, apply...)
	migrate()
	mustFail("could not find the requested resource", "", "get", v2, "in-v1", "--namespace", "second")
	end("second")

	install("third")
	migrate()
	uninstall()
	s.MustLeaveNothing("in-v1", "in-v2")
	object, apply = applied("third")
	s.Kubectl(s.t, object, apply...)
	s.Kubectl(s.t, "", "get", v1, "in-v1", "--namespace", "third")
	mustFail("could not find the requested resource", "", "get", v2, "in-v1", "--namespace", "third")
	end("third")
	return !s.t.Failed()
}

// An installation is removed by each of the ways that users have. Afterwards nothing refuses a write, and nothing refuses the next
// installation, also by another tool. YARE_HELM_RUNS is how often each way is taken.
//
// Regression: the leader made its webhook configurations again while they were removed. Then each write of its objects was
// refused for ever, and so was the next installation.
func TestInstallationsAreRemoved(t *testing.T) {
	t.Parallel()
	s := &cronJobSite{t: t, program: site.Build(t, "cronjob"), chart: t.TempDir(), next: site.BuildNextCronJob(t), nextChart: t.TempDir(), runs: 1}
	if text := os.Getenv("YARE_HELM_RUNS"); text != "" {
		var err error
		if s.runs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	site.Run(t, s.program, "manifests", "--helm", s.chart, "--image", site.Image)
	site.Run(t, s.next, "manifests", "--helm", s.nextChart, "--image", site.Image)
	s.Site = site.New(t)
	s.client = s.Client(t)
	isConfiguration := func(kind string) bool { return strings.HasSuffix(kind, "WebhookConfiguration") }
	helm4, helm3 := s.helm("v4"), s.helm("v3")
	byHelm := func(helm func(args ...string)) func() {
		return func() {
			helm("lint", "--strict", s.chart)
			helm("install", site.Release, s.chart, "--create-namespace")
			s.Start(s.program)
			s.MustServe()
			helm("upgrade", site.Release, s.nextChart, "--set", "replicas=1")
			s.Start(s.next)
			s.MustServe()
			s.mustHaveNote(true)
			helm("rollback", site.Release, "1")
			s.Start(s.program)
			s.MustServe()
			s.mustHaveNote(false)
			helm("uninstall", site.Release)
			s.Kubectl(t, "", "get", "namespace", site.Namespace)
		}
	}
	applied := func(remove func(stream string)) func() {
		return func() {
			s.Kubectl(t, site.Run(t, s.program, "crd"), "apply", "--server-side", "--force-conflicts", "-f", "-")
			stream := s.apply("--without-definitions")
			s.Start(s.program)
			s.apply() // with spec.conversion
			s.MustServe()
			remove(stream)
		}
	}
	if !s.keepsDefinition(helm4) {
		return
	}
	// everything removes the objects first, and then all that the program has printed, as the table of administration.md says. The
	// arguments of kubectl name what is printed.
	everything := func(stream string, args ...string) func() {
		return func() {
			s.Kubectl(t, stream, append([]string{"apply", "--server-side"}, args...)...)
			s.Start(s.program)
			s.MustServe()
			s.DeleteObjects()
			s.Kubectl(t, stream, append([]string{"delete", "--timeout=5m"}, args...)...)
		}
	}
	stream, folder := site.Run(t, s.program, s.manifests()...), t.TempDir()
	site.Run(t, s.program, s.manifests("--kustomize", folder)...)
	for _, way := range []struct {
		name string
		do   func()
		gone bool // with its definition
	}{
		{"Helm 4", byHelm(helm4), false},
		{"Helm 3", byHelm(helm3), false},
		{"a prune in no order", applied(func(stream string) { s.deleteAll(stream, nil) }), false},
		{"a prune with the configurations first", applied(func(stream string) { s.deleteAll(stream, isConfiguration) }), false},
		{"a prune with the configurations last", applied(func(stream string) {
			s.deleteAll(stream, func(kind string) bool { return !isConfiguration(kind) })
		}), false},
		{"kubectl delete", applied(func(stream string) { s.Kubectl(t, stream, "delete", "--wait=false", "-f", "-") }), false},
		{"kubectl delete -f", everything(stream, "-f", "-"), true},
		{"kubectl delete -k", everything("", "-k", folder), true},
	} {
		for i := range s.runs {
			began := time.Now()
			way.do()
			s.End()
			if way.gone {
				s.MustRemoveEverything(s.program)
			} else {
				s.MustLeaveNothing("in-v1", "in-v2")
			}
			t.Logf("%s, %d: %s", way.name, i+1, time.Since(began).Round(100*time.Millisecond))
			if t.Failed() {
				return
			}
		}
	}
}
