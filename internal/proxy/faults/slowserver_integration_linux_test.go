package faults_test

import (
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
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// TestPastIsThatOfSlowServer compares the past that the proxy shows with the past of a real second API
// server. The connections of this server to etcd are held back.
func TestPastIsThatOfSlowServer(t *testing.T) {
	t.Parallel()
	if os.Getenv("YARETEST_KUBECONFIG") != "" {
		t.Skip("the test needs a control plane of its own")
	}
	control, err := plane.Start(t.Context(), plane.Options{Console: console.ForTests("faults")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	config, _, err := kube.ConfigSource{Kubeconfig: control.Kubeconfig()}.Load()
	if err != nil {
		t.Fatal(err)
	}
	gate := newGate(t, filepath.Join(control.Dir(), "etcd.sock"))
	slow := startSecondServer(t, control, config, gate.listener.Addr().String())

	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	secrets := kube.Namespaced[corev1.Secret](client, "default")
	create := func(name string) *corev1.Secret {
		t.Helper()
		made, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	create("old")
	create("deleted")
	p := newProxy(t, faults.Options{Target: config})
	shown := newProgram(t, p, "program")
	begin(t, p, 0)
	stale := arm(t, p, faults.Fault{Kind: faults.Stale})
	const path = "/api/v1/namespaces/default/secrets"
	yaretest.Eventually(t, func() error { // until the second server has the past
		if names, _ := listedSecrets(t, slow, path+"?resourceVersion=0"); len(names) != 2 {
			return fmt.Errorf("the second server has %v", names)
		}
		return nil
	})
	gate.hold()
	created := create("new")
	if err := secrets.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}

	slowNames, slowVersion := listedSecrets(t, slow, path+"?resourceVersion=0")
	shownNames, shownVersion := listedSecrets(t, shown, path+"?resourceVersion=0")
	if !slices.Equal(slowNames, shownNames) || !slices.Equal(slowNames, []string{"deleted", "old"}) {
		t.Errorf("a list from the second server returns %v, from the proxy %v", slowNames, shownNames)
	}
	for _, name := range []string{"old", "new", "deleted"} {
		slowCode, _ := slow.send(http.MethodGet, path+"/"+name+"?resourceVersion=0", "")
		shownCode, _ := shown.send(http.MethodGet, path+"/"+name+"?resourceVersion=0", "")
		if slowCode != shownCode {
			t.Errorf("a get of %s is answered by the second server with %d, by the proxy with %d", name, slowCode, shownCode)
		}
	}
	waitTriggered(t, stale)
	slowWatch := slow.watch(path + "?watch=true&resourceVersion=" + slowVersion)
	shownWatch := shown.watch(path + "?watch=true&resourceVersion=" + shownVersion)
	waitHeld(t, p, 2)
	slowWatch.wantNothing()
	shownWatch.wantNothing()
	gate.release()
	p.Injector.Disarm()
	added := "ADDED " + created.ResourceVersion
	slowWatch.want(added)
	shownWatch.want(added)
	for _, w := range []*watching{slowWatch, shownWatch} {
		if got := <-w.events; !strings.HasPrefix(got, "DELETED ") {
			t.Errorf("the watch returns %q, want the deletion", got)
		}
	}
}

// listedSecrets returns the sorted names of a list, and its version.
func listedSecrets(t *testing.T, p *program, path string) ([]string, string) {
	t.Helper()
	names, version := list(t, p, path)
	slices.Sort(names)
	return names, version
}

// startSecondServer starts an API server with the arguments of the first, but with another address,
// and the etcd at a socket. It returns a client of the second.
func startSecondServer(t *testing.T, control *plane.Plane, config *kube.Config, etcd string) *program {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", control.Pids()[yaretest.APIServer]))
	if err != nil {
		t.Fatal(err)
	}
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(reserved.Addr().(*net.TCPAddr).Port)
	reserved.Close()
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")[1:]
	for i, arg := range args {
		switch name, _, _ := strings.Cut(arg, "="); name {
		case "--etcd-servers":
			args[i] = "--etcd-servers=unix://" + etcd
		case "--secure-port":
			args[i] = "--secure-port=" + port
		}
	}
	cmd := exec.Command(control.Binary(), args...)
	cmd.Stderr = &strings.Builder{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("the second server logged:\n%s", cmd.Stderr)
		}
	})
	config = config.Clone()
	config.Host = "https://127.0.0.1:" + port
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, host: config.Host, transport: transport}
	yaretest.Eventually(t, func() error {
		if code, body := p.send(http.MethodGet, "/readyz", ""); code != http.StatusOK {
			return fmt.Errorf("the second server is not ready: %d %s", code, body)
		}
		return nil
	})
	return p
}

// gate passes connections on to a socket. It can hold back what the other side answers.
type gate struct {
	listener net.Listener
	target   string
	passing  sync.WaitGroup

	mu sync.Mutex
	// open is closed while answers pass.
	open        chan struct{}
	connections []net.Conn
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	folder, err := os.MkdirTemp("", "gate") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "etcd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, target: target, open: make(chan struct{})}
	g.release()
	g.passing.Go(g.accept)
	t.Cleanup(func() {
		listener.Close()
		g.release()
		g.mu.Lock()
		for _, c := range g.connections {
			c.Close()
		}
		g.mu.Unlock()
		g.passing.Wait()
	})
	return g
}

func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", g.target)
		if err != nil {
			client.Close()
			continue
		}
		g.mu.Lock()
		g.connections = append(g.connections, client, server)
		g.mu.Unlock()
		g.passing.Go(func() {
			_, _ = io.Copy(server, client)
			server.Close()
		})
		g.passing.Go(func() {
			_, _ = io.Copy(gated{g, client}, server)
			client.Close()
		})
	}
}

// gated writes while its gate is open.
type gated struct {
	gate *gate
	to   io.Writer
}

func (w gated) Write(data []byte) (int, error) {
	w.gate.mu.Lock()
	open := w.gate.open
	w.gate.mu.Unlock()
	<-open
	return w.to.Write(data)
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}
