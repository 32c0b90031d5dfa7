package operator_test

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// proxyLag is how late kube-proxy learns of a change.
const proxyLag = 2 * time.Second

// serviceNetwork is what kube-proxy and the network of Pods are in a cluster. An API server reaches each Service by it, and
// each new connection goes to one of the endpoints.
type serviceNetwork struct {
	server *http.Server
	mu     sync.Mutex
	// endpoints are the addresses behind the addresses of Services.
	endpoints map[string][]string
}

// newScheduleServer returns a control plane with a serviceNetwork. It checks the permissions for owner references, as the
// strictest clusters do.
func newScheduleServer(t *testing.T) (*yaretest.Cluster, *serviceNetwork) {
	t.Helper()
	folder, err := os.MkdirTemp("", "yare-network-") // the path of a socket must be short
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
	n := &serviceNetwork{endpoints: make(map[string][]string)}
	n.server = &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(listener) }()
	cluster := yaretest.New(t, yaretest.APIServerArgs("--egress-selector-config-file="+config, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"))
	t.Cleanup(func() {
		_ = n.server.Close() // the error is about the listener
		<-served
	})
	return cluster, n
}

// add makes an address an endpoint of a Service.
func (n *serviceNetwork) add(service, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endpoints[service] = append(n.endpoints[service], address)
}

// remove ends that an address is an endpoint. Its connections stay.
func (n *serviceNetwork) remove(service, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endpoints[service] = slices.DeleteFunc(slices.Clone(n.endpoints[service]), func(a string) bool { return a == address })
}

func (n *serviceNetwork) endpointOf(service string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.endpoints[service]
	if len(all) == 0 {
		return "", fmt.Errorf("the Service %s has no endpoint", service)
	}
	return all[rand.N(len(all))], nil
}

// connect makes a connection to an endpoint.
func (n *serviceNetwork) connect(w http.ResponseWriter, r *http.Request) {
	address, err := n.endpointOf(r.Host)
	var outgoing net.Conn
	if err == nil {
		outgoing, err = new(net.Dialer).DialContext(r.Context(), "tcp", address)
	}
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
	copying.Go(func() { copyHalf(outgoing, buffered) })
	copying.Go(func() { copyHalf(incoming, outgoing) })
	copying.Wait()
}

// copyHalf copies one direction, and passes on its end.
func copyHalf(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

// site is an installation of a program with pumps, as its users make it. Processes with the account of the installation are
// its Pods.
type site[G interface{ Group() string }] struct {
	t       *testing.T
	cluster *yaretest.Cluster
	network *serviceNetwork
	client  *kube.Client
	// namespace is that of the program. The program watches the namespaces of users alone, unless isWide.
	namespace string
	users     []string
	isWide    bool
	// lease is the duration of the lease. A busy machine must not make a leader lose a short one.
	lease string
	// isDeployed is true if the Deployment is applied too. Its Pods are simulated, and are no replicas.
	isDeployed bool
	pumps      kube.API[operator.Pump[G]]
	// kubeconfig is that of the account of the installation. service is the address of the Service. Both are known after
	// the first apply.
	kubeconfig, service string
	started             int
}

func newSite[G interface{ Group() string }](t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork, namespace string) *site[G] {
	t.Helper()
	s := &site[G]{t: t, cluster: cluster, network: network, client: cluster.Client(t), namespace: namespace, lease: "30s"}
	s.users = []string{cluster.Namespace(t)}
	s.pumps = kube.Namespaced[operator.Pump[G]](s.client, s.users[0])
	return s
}

// program returns the beginning of the command line of a release in a Pod. Both texts about the Pod are empty outside of one.
func (s *site[G]) program(release, pod, podNamespace string) []string {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	var g G
	return []string{self, "as:pumps", g.Group(), release, pod, podNamespace}
}

// watched returns the flags for the namespaces.
func (s *site[G]) watched() (args []string) {
	if s.isWide {
		return nil
	}
	for _, each := range s.users {
		args = append(args, "--watch-namespace", each)
	}
	return args
}

// command runs a command of a release, and returns its output.
func (s *site[G]) command(release string, args ...string) string {
	s.t.Helper()
	line := append(s.program(release, "", ""), args...)
	cmd := exec.CommandContext(s.t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		s.t.Fatalf("%s: %v\n%s", args[0], err, exit.Stderr)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// apply applies the manifests of a release, without the Deployment unless isDeployed.
func (s *site[G]) apply(release string) {
	s.t.Helper()
	var kept []string
	for document := range strings.SplitSeq(s.command(release, append([]string{"manifests", "--image", "example.com/pumps:v1", "--namespace", s.namespace, "--leader-elect"}, s.watched()...)...), "---\n") {
		if s.isDeployed || !strings.Contains(document, "kind: Deployment\n") {
			kept = append(kept, document)
		}
	}
	s.cluster.Kubectl(s.t, strings.Join(kept, "---\n"), "apply", "--server-side", "--force-conflicts", "-f", "-")
	token := strings.TrimSpace(s.cluster.Kubectl(s.t, "", "create", "token", "pumps", "--namespace", s.namespace, "--duration=2h"))
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
	if service, err := kube.Get[corev1.Service](s.t.Context(), s.client, s.namespace, "pumps"); err == nil {
		s.service = net.JoinHostPort(service.Spec.ClusterIP, "443")
	} else if !kube.IsNotFound(err) {
		s.t.Fatal(err)
	}
	yaretest.Eventually(s.t, func() error { // the server takes its time with a new definition
		_, err := s.pumps.List(s.t.Context())
		return err
	})
}

// pod is a process of a site.
type pod struct {
	*yaretest.Process
	name, release   string
	webhooks, pages string
}

// start starts a Pod of a release, and waits until it is ready. kube-proxy knows it proxyLag later.
func (s *site[G]) start(release string) *pod {
	s.t.Helper()
	s.started++
	p := &pod{name: fmt.Sprintf("pumps-%d", s.started), release: release}
	for isStarted := false; !isStarted; {
		addresses := freeAddresses(s.t, 2)
		p.webhooks, p.pages = addresses[0], addresses[1]
		line := append(s.program(release, p.name, s.namespace), "run", "--listen", p.pages, "--leader-elect", "--lease-duration", s.lease)
		if release != "none" {
			line = append(line, "--webhooks", p.webhooks)
		}
		line = append(line, s.watched()...)
		p.Process = yaretest.Run(s.t, s.kubeconfig, line[0], line[1:]...)
		yaretest.Eventually(s.t, func() error {
			// Another process can have taken an address meanwhile. Then the Pod starts again with others.
			isTaken := slices.ContainsFunc(p.Log(), func(l string) bool { return strings.Contains(l, "address already in use") })
			err := p.readiness()
			isStarted = err == nil
			if isTaken {
				return nil
			}
			return err
		})
	}
	if release != "none" { // the target port of the Service is a name that only these Pods have
		s.later(func() { s.network.add(s.service, p.webhooks) })
	}
	return p
}

// waitForEndpoints waits until kube-proxy knows n Pods.
func (s *site[G]) waitForEndpoints(n int) {
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
func (s *site[G]) later(f func()) {
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
func (s *site[G]) end(p *pod) {
	s.t.Helper()
	p.Signal(s.t, syscall.SIGTERM)
	s.later(func() { s.network.remove(s.service, p.webhooks) })
}

// roll replaces Pods by those of a release, one after the other, and returns the new ones when the old ones have ended.
func (s *site[G]) roll(release string, old ...*pod) (all []*pod) {
	s.t.Helper()
	for _, each := range old {
		all = append(all, s.start(release))
		s.end(each)
	}
	for _, each := range old {
		if status := each.Wait(s.t); status != 0 {
			s.t.Errorf("the Pod %s ended with the status %d:\n%s", each.name, status, strings.Join(each.Log(), "\n"))
		}
	}
	return all
}

// newPump returns a pump in the first namespace of users.
func (s *site[G]) newPump(name string, size int) *operator.Pump[G] {
	p := &operator.Pump[G]{ObjectMeta: metav1.ObjectMeta{Namespace: s.users[0], Name: name}}
	p.Spec.Size = size
	return p
}

// isRefused returns an error unless the validator refuses a pump of a size.
func (s *site[G]) isRefused(size int) error {
	_, err := s.pumps.Create(s.t.Context(), s.newPump("refused", size), kube.DryRun())
	if !kube.IsInvalid(err) || !strings.Contains(err.Error(), "spec.size") {
		return fmt.Errorf("a pump of the size %d: %w", size, cmp.Or(err, errors.New("it was accepted")))
	}
	return nil
}
