package operator_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

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
