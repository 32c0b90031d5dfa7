package operator_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// processSite is an installation of a program, as its users make it. Processes with the account of the installation are its
// Pods.
type processSite struct {
	t       *testing.T
	cluster *yaretest.Cluster
	network *serviceNetwork
	client  *kube.Client
	// userClient is the client of users. answers records the answers to users that are failures.
	userClient *kube.Client
	answers    *failedAnswers
	// program is the name of the program. This test binary is each of its releases: see releases.
	program string
	// group is the API group of the kind of the program.
	group string
	// isServed returns an error unless the API server serves the kind.
	isServed func() error
	// namespace is that of the program. The program watches the namespaces of users alone, unless isWide.
	namespace string
	users     []string
	isWide    bool
	// lease is the duration of the lease. A busy machine must not make a leader lose a short one.
	lease string
	// isUnelected is true if each replica works, and no one leads.
	isUnelected bool
	// isDeployed is true if the Deployment is applied too. Its Pods are simulated, and are no replicas.
	isDeployed bool
	// kubeconfig is that of the account of the installation. service is the address of the Service. Both are known after
	// the first apply.
	kubeconfig, service string
	started             int
	// ending are the Pods that were replaced and may not have ended.
	ending []*pod
}

func newProcessSite(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork, program, group, namespace string) *processSite {
	t.Helper()
	s := &processSite{t: t, cluster: cluster, network: network, client: cluster.Client(t), program: program, group: group, namespace: namespace, lease: "30s"}
	s.users = []string{cluster.Namespace(t)}
	s.answers = &failedAnswers{path: "/apis/" + group + "/"}
	config := cluster.Config()
	config.WrapTransport = func(connections http.RoundTripper) http.RoundTripper {
		t.Cleanup((&http.Client{Transport: connections}).CloseIdleConnections)
		return s.answers.observe(connections)
	}
	var err error
	if s.userClient, err = kube.NewClient(config); err != nil {
		t.Fatal(err)
	}
	return s
}

// commandLine returns the beginning of the command line of a release in a Pod. Both texts about the Pod are empty outside of
// one.
func (s *processSite) commandLine(release, pod, podNamespace string) []string {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{self, "as:" + s.program, s.group, release, pod, podNamespace}
}

// watched returns the flags for the namespaces.
func (s *processSite) watched() (args []string) {
	if s.isWide {
		return nil
	}
	for _, each := range s.users {
		args = append(args, "--watch-namespace", each)
	}
	return args
}

// command runs a command of a release, and returns its output. It fails the test if the command fails.
func (s *processSite) command(release string, args ...string) string {
	s.t.Helper()
	stdout, stderr, err := s.tryCommand(release, args...)
	if err != nil {
		s.t.Fatalf("%s of release %s: %v\n%s%s", args[0], release, err, stdout, stderr)
	}
	return stdout
}

// tryCommand runs a command of a release, and returns what it has printed.
func (s *processSite) tryCommand(release string, args ...string) (stdout, stderr string, err error) {
	s.t.Helper()
	line := append(s.commandLine(release, "", ""), args...)
	cmd := exec.CommandContext(s.t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig())
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// apply applies the manifests of a release, without the Deployment unless isDeployed. flags are further flags of the command
// manifests.
func (s *processSite) apply(release string, flags ...string) {
	s.t.Helper()
	s.applyUnserved(release, flags...)
	yaretest.Eventually(s.t, s.isServed) // the server takes its time with a new definition
}

// manifests returns the manifests of a release, without the Deployment unless isDeployed.
func (s *processSite) manifests(release string, flags ...string) string {
	s.t.Helper()
	var kept []string
	command := append([]string{"manifests", "--image", "example.com/" + s.program + ":v1", "--namespace", s.namespace, "--leader-elect"}, s.watched()...)
	for document := range strings.SplitSeq(s.command(release, append(command, flags...)...), "---\n") {
		if s.isDeployed || !strings.Contains(document, "kind: Deployment\n") {
			kept = append(kept, document)
		}
	}
	return strings.Join(kept, "---\n")
}

// applyUnserved applies as apply does, and does not wait until the kind is served.
func (s *processSite) applyUnserved(release string, flags ...string) {
	s.t.Helper()
	s.cluster.Kubectl(s.t, s.manifests(release, flags...), "apply", "--server-side", "-f", "-")
	token := strings.TrimSpace(s.cluster.Kubectl(s.t, "", "create", "token", s.program, "--namespace", s.namespace, "--duration=2h"))
	config := s.cluster.Config()
	s.kubeconfig = filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(s.kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: %s}}]
users: [{name: u, user: {token: %s}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
`, s.namespace, token, config.Host, base64.StdEncoding.EncodeToString(config.CAData)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.service = ""
	if service, err := kube.Get[corev1.Service](s.t.Context(), s.client, s.namespace, s.program); err == nil {
		s.service = net.JoinHostPort(service.Spec.ClusterIP, "443")
	} else if !kube.IsNotFound(err) {
		s.t.Fatal(err)
	}
}

// pod is a process of a site.
type pod struct {
	*yaretest.Process
	name, release   string
	webhooks, pages string
}

// start starts a Pod of a release, and waits until it is ready. kube-proxy knows it proxyLag later.
func (s *processSite) start(release string) *pod {
	s.t.Helper()
	p := s.newPod(release)
	s.waitUntilReady(p)
	return p
}

// newPod starts a Pod of a release. It need not be ready.
func (s *processSite) newPod(release string) *pod {
	s.t.Helper()
	s.started++
	p := &pod{name: fmt.Sprintf("%s-%d", s.program, s.started), release: release}
	s.launch(p)
	return p
}

// launch starts the process of a Pod.
func (s *processSite) launch(p *pod) {
	s.t.Helper()
	addresses := freeAddresses(s.t, 2)
	p.webhooks, p.pages = addresses[0], addresses[1]
	line := append(s.commandLine(p.release, p.name, s.namespace), "run", "--listen", p.pages)
	if !s.isUnelected {
		line = append(line, "--leader-elect", "--lease-duration", s.lease)
	}
	if ServesWebhooks(p.release) {
		line = append(line, "--webhooks", p.webhooks)
	}
	line = append(line, s.watched()...)
	p.Process = yaretest.Run(s.t, s.kubeconfig, line[0], line[1:]...)
}

// waitUntilReady waits until a Pod is ready. kube-proxy knows it proxyLag later.
func (s *processSite) waitUntilReady(p *pod) {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		// Another process can have taken an address meanwhile. Then the Pod starts again with others.
		if slices.ContainsFunc(p.Log(), func(l string) bool { return strings.Contains(l, "address already in use") }) {
			s.launch(p)
		}
		return p.readiness()
	})
	if ServesWebhooks(p.release) { // the target port of the Service is a name that only these Pods have
		s.later(func() { s.network.add(s.service, p.webhooks) })
	}
}

// waitForEndpoints waits until kube-proxy knows n Pods.
func (s *processSite) waitForEndpoints(n int) {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		s.network.mu.Lock()
		defer s.network.mu.Unlock()
		if got := len(s.network.endpoints[s.service]); got != n {
			return fmt.Errorf("there are %d endpoints, not %d", got, n)
		}
		return nil
	})
}

// freeAddresses returns different addresses that nobody listens on.
func freeAddresses(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() // after all addresses are known
		all = append(all, listener.Addr().String())
	}
	return all
}

// later calls f when kube-proxy has learned of a change.
func (s *processSite) later(f func()) {
	timer := time.AfterFunc(proxyLag, f)
	s.t.Cleanup(func() { timer.Stop() })
}

// readiness returns an error unless the Pod is ready.
func (p *pod) readiness() error {
	response, err := http.Get("http://" + p.pages + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", text)
	}
	return nil
}

// end begins to end a Pod, as a kubelet does. kube-proxy knows it proxyLag later.
func (s *processSite) end(p *pod) {
	s.t.Helper()
	p.Signal(s.t, syscall.SIGTERM)
	s.later(func() { s.network.remove(s.service, p.webhooks) })
}

// roll replaces Pods by those of a release, one after the other, and returns the new ones when the old ones have ended.
func (s *processSite) roll(release string, old ...*pod) []*pod {
	s.t.Helper()
	all := s.replace(release, old...)
	s.waitForEnds()
	return all
}

// replace replaces Pods by those of a release, one after the other, and returns the new ones. The old ones answer calls for
// 15 more seconds, as behind "kubectl rollout status": see waitForEnds.
func (s *processSite) replace(release string, old ...*pod) (all []*pod) {
	s.t.Helper()
	for _, each := range old {
		all = append(all, s.start(release))
		s.end(each)
	}
	s.ending = append(s.ending, old...)
	return all
}

// waitForEnds waits until the Pods have ended that were replaced.
func (s *processSite) waitForEnds() {
	s.t.Helper()
	for _, each := range s.ending {
		if status := each.Wait(s.t); status != 0 {
			s.t.Errorf("the Pod %s ended with the status %d:\n%s", each.name, status, strings.Join(each.Log(), "\n"))
		}
	}
	s.ending = nil
}
