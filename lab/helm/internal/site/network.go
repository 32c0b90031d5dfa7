package site

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
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
	return yaretest.New(t, yaretest.APIServerArgs("--egress-selector-config-file="+config,
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement")), n
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
