package helm

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

const (
	release    = "one"
	namespace  = "one-system"
	definition = "cronjobs.batch.tutorial.example.com"
)

// network is what the API server reaches Services by: each connection goes to the program, if it runs.
type network struct {
	// program is the address of the webhooks of the program, or empty.
	program atomic.Value
}

// newCluster returns a control plane whose API server dials Services by a network.
func newCluster(t *testing.T) (*yaretest.Cluster, *network) {
	t.Helper()
	folder, err := os.MkdirTemp("", "yare-helm-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket, config := filepath.Join(folder, "socket"), filepath.Join(folder, "egress.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}
`, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	n := new(network)
	n.program.Store("")
	server := &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // the error is about the listener
		<-served
	})
	return yaretest.New(t, yaretest.APIServerArgs("--egress-selector-config-file="+config, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")), n
}

// connect makes a connection to the program.
func (n *network) connect(w http.ResponseWriter, r *http.Request) {
	address, _ := n.program.Load().(string)
	outgoing, err := new(net.Dialer).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer outgoing.Close()
	incoming, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer incoming.Close()
	if _, err := io.WriteString(incoming, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(outgoing, buffered); _ = outgoing.Close() })
	copying.Go(func() { _, _ = io.Copy(incoming, outgoing); _ = incoming.Close() })
	copying.Wait()
}

// site is a cluster in which a program with webhooks and conversions is installed and removed again and again. A process with the
// account of the installation is its Pod.
type site struct {
	t       *testing.T
	cluster *yaretest.Cluster
	network *network
	client  *kube.Client
	// program and chart are the program and its chart.
	program, chart string
	process        *yaretest.Process
	runs           int
}

// start starts the process of the installation, and waits until it converts, validates and completes objects.
func (s *site) start() {
	s.t.Helper()
	token := strings.TrimSpace(s.cluster.Kubectl(s.t, "", "create", "token", release, "--namespace", namespace, "--duration=1h"))
	config := s.cluster.Config()
	kubeconfig := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: %s}}]
users: [{name: u, user: {token: %s}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
`, namespace, token, config.Host, base64.StdEncoding.EncodeToString(config.CAData)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s.process = yaretest.Run(s.t, kubeconfig, s.program, "run", "--leader-elect", "--lease-duration=10s", "--webhooks="+address, "--webhook-service="+release)
	s.network.program.Store(address)
	yaretest.Eventually(s.t, func() error {
		_, stderr, err := s.cluster.TryKubectl(s.t, cronJob("v1", "wrong", "61 * * * *"), "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(stderr, "spec.schedule: Invalid value") {
			return fmt.Errorf("a wrong schedule: %w, %s", cmp.Or(err, errors.New("it was accepted")), stderr)
		}
		policy, stderr, err := s.cluster.TryKubectl(s.t, cronJob("v2", "plain", "* * * * *"), "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.jobTemplate.spec.template.spec.restartPolicy}")
		if err != nil || policy != "OnFailure" {
			return fmt.Errorf("the restart policy %q: %w, %s", policy, cmp.Or(err, errors.New("it is not the default")), stderr)
		}
		return nil
	})
}

// cronJob returns a CronJob in a version.
func cronJob(version, name, schedule string) string {
	if version == "v2" {
		fields := strings.Fields(schedule)
		schedule = fmt.Sprintf("{minute: %q, hour: %q, dayOfMonth: %q, month: %q, dayOfWeek: %q}", fields[0], fields[1], fields[2], fields[3], fields[4])
	} else {
		schedule = strconv.Quote(schedule)
	}
	return fmt.Sprintf("apiVersion: batch.tutorial.example.com/%s\nkind: CronJob\nmetadata: {name: %s, namespace: default}\nspec: {schedule: %s, suspend: true, jobTemplate: {spec: {template: {spec: {containers: [{name: work, image: example.com/work}]}}}}}\n", version, name, schedule)
}

// mustServe fails the test unless objects of both versions can be written and read in both versions.
func (s *site) mustServe() {
	s.t.Helper()
	for _, version := range []string{"v1", "v2"} {
		s.cluster.Kubectl(s.t, cronJob(version, "in-"+version, "5 * * * *"), "apply", "--server-side", "--force-conflicts", "-f", "-")
		for _, other := range []string{"v1", "v2"} {
			s.cluster.Kubectl(s.t, "", "get", "cronjobs."+other+".batch.tutorial.example.com", "in-"+version)
		}
	}
}

// end ends the process as a kubelet does, after the Deployment is gone.
func (s *site) end() {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		if found := s.cluster.Kubectl(s.t, "", "get", "deployments", "--namespace", namespace, "--ignore-not-found", "-o", "name"); found != "" {
			return errors.New(found + " is there")
		}
		return nil
	})
	s.process.Signal(s.t, syscall.SIGTERM)
	if status := s.process.Wait(s.t); status != 0 {
		s.t.Errorf("the program ended with the status %d", status)
	}
	s.network.program.Store("")
}

// mustLeaveNothing fails the test unless objects can be created, read, changed and deleted in the stored version, and unless all
// that the installation has made is gone.
func (s *site) mustLeaveNothing() {
	s.t.Helper()
	yaretest.Eventually(yaretest.Within(s.t, 10*time.Second), func() error { // API servers see the end of a configuration a moment later
		_, stderr, err := s.cluster.TryKubectl(s.t, cronJob("v1", "afterwards", "61 * * * *"), "create", "-f", "-")
		if err != nil {
			return fmt.Errorf("a write after the removal: %s", stderr)
		}
		return nil
	})
	s.cluster.Kubectl(s.t, "", "patch", "cronjobs.v1.batch.tutorial.example.com", "afterwards", "--type=merge", "-p", `{"spec":{"schedule":"62 * * * *"}}`)
	s.cluster.Kubectl(s.t, "", "get", "cronjobs.v1.batch.tutorial.example.com")
	s.cluster.Kubectl(s.t, "", "delete", "cronjobs.v1.batch.tutorial.example.com", "afterwards")
	for _, name := range []string{"in-v1", "in-v2"} {
		s.cluster.Kubectl(s.t, "", "patch", "cronjobs.v1.batch.tutorial.example.com", name, "--type=merge", "-p", `{"spec":{"schedule":"62 * * * *"}}`)
		s.cluster.Kubectl(s.t, "", "delete", "cronjobs.v1.batch.tutorial.example.com", name)
	}
	yaretest.Eventually(s.t, func() error {
		if phase := s.cluster.Kubectl(s.t, "", "get", "namespace", namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}"); phase == "Terminating" {
			return errors.New("the Namespace ends")
		}
		// The collector deletes what the Deployment owns.
		left := s.cluster.Kubectl(s.t, "", "get", "validatingwebhookconfigurations,mutatingwebhookconfigurations,secrets,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings",
			"--all-namespaces", "-o", "name")
		for name := range strings.Lines(left) {
			if _, name, _ := strings.Cut(strings.TrimSpace(name), "/"); name == release || strings.HasPrefix(name, release+".") || strings.HasPrefix(name, release+"-") {
				return errors.New(name + " is left")
			}
		}
		return nil
	})
}

// apply applies what the command manifests prints, and returns it.
func (s *site) apply(flags ...string) string {
	s.t.Helper()
	stream := run(s.t, s.program, append([]string{"manifests", "--image", image, "--namespace", namespace, "--name-prefix", release}, flags...)...)
	s.cluster.Kubectl(s.t, stream, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return stream
}

// deleteAll deletes all objects of a stream at once, and then those of first as soon as the others have begun: a tool of GitOps
// deletes in an order of its own.
func (s *site) deleteAll(stream string, isFirst func(kind string) bool) {
	s.t.Helper()
	var all, first []*wire.Request
	for _, o := range parse(s.t, stream) {
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
func (s *site) helm(version string) func(args ...string) {
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
		cmd := exec.CommandContext(s.t.Context(), binary, append(args, "--namespace", namespace)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		if said, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("helm %s: %v\n%s", args[0], err, said)
		}
	}
}

// keepsDefinition removes an installation while objects exist, so that the definition stays with them. administration.md has what works
// then, and the command that makes all work in the stored version, before the removal and after it. It reports whether all is so.
func (s *site) keepsDefinition(helm func(args ...string)) bool {
	s.t.Helper()
	const v1, v2 = "cronjobs.v1.batch.tutorial.example.com", "cronjobs.v2.batch.tutorial.example.com"
	inNamespace := func(users, object string) string {
		return strings.Replace(object, "namespace: default", "namespace: "+users, 1)
	}
	install := func(users ...string) {
		helm("install", release, s.chart, "--create-namespace")
		s.start()
		s.mustServe()
		for _, each := range users {
			s.cluster.Kubectl(s.t, "", "create", "namespace", each)
			for _, version := range []string{"v1", "v2"} {
				s.cluster.Kubectl(s.t, inNamespace(each, cronJob(version, "in-"+version, "5 * * * *")), "apply", "--server-side", "-f", "-")
			}
		}
	}
	uninstall := func() {
		helm("uninstall", release)
		s.end()
	}
	// migrate runs the command of the page, which may leave these objects.
	migrate := func(left ...string) {
		s.t.Helper()
		cmd := exec.CommandContext(s.t.Context(), s.program, "migrate", "--remove-version", "v2")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig())
		said, err := cmd.CombinedOutput()
		if (err != nil) != (len(left) > 0) || slices.ContainsFunc(left, func(name string) bool { return !strings.Contains(string(said), name) }) {
			s.t.Errorf("migrate, which leaves %v: %v\n%s", left, err, said)
		}
	}
	mustFail := func(want, stdin string, args ...string) {
		s.t.Helper()
		if _, stderr, err := s.cluster.TryKubectl(s.t, stdin, args...); err == nil || !strings.Contains(stderr, want) {
			s.t.Errorf("%v: %v, %s, without %q", args, err, stderr, want)
		}
	}
	end := func(users string) {
		s.cluster.Kubectl(s.t, "", "delete", "namespace", users, "--ignore-not-found", "--timeout=60s")
	}
	// applied is what a user who has used v2 applies in v1 now.
	applied := func(users string) (string, []string) {
		return inNamespace(users, cronJob("v1", "in-v2", "8 * * * *")), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}
	}

	install("first", "second")
	s.cluster.Kubectl(s.t, "", "create", "namespace", "empty")
	uninstall()
	s.mustLeaveNothing()
	end("empty")
	mustFail(`service "one" not found`, "", "get", v2, "in-v1", "--namespace", "first")
	object, apply := applied("first")
	mustFail(`service "one" not found`, object, apply...)
	s.cluster.Kubectl(s.t, "", "delete", "namespace", "first", "--wait=false")
	yaretest.Eventually(s.t, func() error {
		conditions := s.cluster.Kubectl(s.t, "", "get", "namespace", "first", "-o", "jsonpath={.status.conditions}")
		if !strings.Contains(conditions, "conversion webhook") {
			return errors.New("the namespace has the conditions " + conditions)
		}
		return nil
	})
	migrate("second/in-v2")
	end("first")
	object, apply = applied("second")
	mustFail(`service "one" not found`, object, apply...)
	s.cluster.Kubectl(s.t, "", "patch", v1, "in-v2", "--namespace", "second", "--type=json", "--patch", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	s.cluster.Kubectl(s.t, object, apply...)
	migrate()
	mustFail("could not find the requested resource", "", "get", v2, "in-v1", "--namespace", "second")
	end("second")

	install("third")
	migrate()
	uninstall()
	s.mustLeaveNothing()
	object, apply = applied("third")
	s.cluster.Kubectl(s.t, object, apply...)
	s.cluster.Kubectl(s.t, "", "get", v1, "in-v1", "--namespace", "third")
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
	s := &site{t: t, program: build(t, "cronjob"), chart: t.TempDir(), runs: 1}
	if text := os.Getenv("YARE_HELM_RUNS"); text != "" {
		var err error
		if s.runs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s.program, "manifests", "--helm", s.chart, "--image", image)
	s.cluster, s.network = newCluster(t)
	s.client = s.cluster.Client(t)
	isConfiguration := func(kind string) bool { return strings.HasSuffix(kind, "WebhookConfiguration") }
	helm4, helm3 := s.helm("v4"), s.helm("v3")
	byHelm := func(helm func(args ...string)) func() {
		return func() {
			helm("lint", "--strict", s.chart)
			helm("install", release, s.chart, "--create-namespace")
			s.start()
			s.mustServe()
			helm("upgrade", release, s.chart, "--set", "replicas=1")
			s.mustServe()
			helm("rollback", release, "1")
			s.mustServe()
			helm("uninstall", release)
		}
	}
	applied := func(remove func(stream string)) func() {
		return func() {
			s.cluster.Kubectl(t, run(t, s.program, "crd"), "apply", "--server-side", "--force-conflicts", "-f", "-")
			stream := s.apply("--without-definitions")
			s.start()
			s.apply() // with spec.conversion
			s.mustServe()
			remove(stream)
		}
	}
	if !s.keepsDefinition(helm4) {
		return
	}
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"Helm 4", byHelm(helm4)},
		{"Helm 3", byHelm(helm3)},
		{"a prune in no order", applied(func(stream string) { s.deleteAll(stream, nil) })},
		{"a prune with the configurations first", applied(func(stream string) { s.deleteAll(stream, isConfiguration) })},
		{"a prune with the configurations last", applied(func(stream string) {
			s.deleteAll(stream, func(kind string) bool { return !isConfiguration(kind) })
		})},
		{"kubectl delete", applied(func(stream string) { s.cluster.Kubectl(t, stream, "delete", "--wait=false", "-f", "-") })},
	} {
		for i := range s.runs {
			began := time.Now()
			way.do()
			s.end()
			s.mustLeaveNothing()
			t.Logf("%s, %d: %s", way.name, i+1, time.Since(began).Round(100*time.Millisecond))
			if t.Failed() {
				return
			}
		}
	}
}
