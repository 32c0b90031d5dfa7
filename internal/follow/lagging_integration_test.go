package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// What a new process may assume, on two real API servers with one etcd, of which one lags: its connection to
// etcd is held back. The server answers from an old state only if a request names resourceVersion=0. A list
// of yare waits for the present state. A watch that is resumed on the server from a later version is silent.
// When the server has caught up, nothing is lost.
func TestAPIServerThatLags(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the arguments of the running API server are read from /proc")
	}
	cluster := yaretest.New(t)
	ahead := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	apply(t, ahead, newThing(namespace, "a", 1))
	config, etcd := startSecondAPIServer(t, cluster)
	lagging, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	resumed := followThings(t, lagging.InNamespaces(namespace))
	resumed.expect(t, "+a1 =")

	etcd.hold()
	apply(t, ahead, newThing(namespace, "a", 2), newThing(namespace, "b", 1))
	changed, err := kube.Namespaced[thing](ahead, namespace).Get(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}

	// The danger: this is what a client sees that asks for resourceVersion=0.
	streams, err := kube.Namespaced[thing](lagging, namespace).Streams()
	if err != nil {
		t.Fatal(err)
	}
	response, err := lagging.Do(t.Context(), streams[0].Request(wire.VerbList, "resourceVersion", "0"))
	if err != nil {
		t.Fatal(err)
	}
	if body := string(response.Body); !strings.Contains(body, `"name":"a"`) || strings.Contains(body, `"name":"b"`) {
		t.Fatalf("the server does not lag: %s", body)
	}

	// A list of yare, and a new process, do not get that. A watch from a version that the
	// server has not reached is silent.
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	fresh := followThings(t, lagging.InNamespaces(namespace))
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for page, err := range streams[0].Pages(ctx, lagging) {
			if err == nil {
				t.Errorf("a list is answered from the past: %s", page.Items)
			}
		}
	})
	waiting.Go(func() {
		for e, err := range kube.Namespaced[thing](lagging, namespace).Watch(ctx, changed.ResourceVersion) {
			if ctx.Err() == nil {
				t.Errorf("the resumed watch shows %s %v, %v", e.Type, e.Object, err)
			}
		}
	})
	waiting.Wait()
	if published := fresh.all(); slices.Contains(published, "=") {
		t.Errorf("a new process takes the past for complete: %q", published)
	}

	etcd.release()
	fresh.expectLast(t, "a2", "b1")
	resumed.expectLast(t, "a2", "b1")
}

// startSecondAPIServer starts another API server on the etcd of cluster, through a connection
// that can be held back.
func startSecondAPIServer(t *testing.T, cluster *yaretest.Cluster) (*kube.Config, *heldConnection) {
	t.Helper()
	program, args := runningAPIServer(t, filepath.Dir(cluster.Kubeconfig()))
	folder, err := os.MkdirTemp("", "lag") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	free.Close()
	etcd := &heldConnection{}
	socket := filepath.Join(folder, "etcd.sock")
	for i, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--etcd-servers":
			etcd.serve(t, socket, strings.TrimPrefix(value, "unix://"))
			args[i] = name + "=unix://" + socket
		case "--secure-port":
			args[i] = name + "=" + port
		case "--cert-dir":
			args[i] = name + "=" + folder
		}
	}
	server := exec.Command(program, args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	config := cluster.Config()
	config.Host = "https://" + address
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		_, err := kube.Everywhere[thing](client).List(t.Context())
		return err
	})
	return config, etcd
}

// runningAPIServer returns the program and the arguments of the API server whose files are in
// folder.
func runningAPIServer(t *testing.T, folder string) (program string, args []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		isServer := slices.Contains(args[:min(2, len(args))], "kube-apiserver")
		if isServer && slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, folder+"/") }) {
			program, err := os.Readlink(filepath.Join(process, "exe"))
			if err != nil {
				t.Fatal(err)
			}
			return program, append([]string{"kube-apiserver"}, args[slices.Index(args, "kube-apiserver")+1:]...)
		}
	}
	t.Fatalf("no API server runs in %s", folder)
	return "", nil
}

// heldConnection passes on connections, and holds back what the server sends from hold to
// release.
type heldConnection struct {
	mu   sync.Mutex
	held chan struct{} // closed by release; nil: not held
}

func (h *heldConnection) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = make(chan struct{})
}

func (h *heldConnection) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held != nil {
		close(h.held)
		h.held = nil
	}
}

// wait waits while the connection is held.
func (h *heldConnection) wait() {
	h.mu.Lock()
	held := h.held
	h.mu.Unlock()
	if held != nil {
		<-held
	}
}

// serve passes on connections from one socket to another until the end of t.
func (h *heldConnection) serve(t *testing.T, from, to string) {
	t.Helper()
	listener, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			server, err := net.Dial("unix", to)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			running.Go(func() { _, _ = io.Copy(server, client); server.Close() })
			running.Go(func() { _, _ = io.Copy(&heldWriter{h, client}, server); client.Close() })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		h.release()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

// heldWriter writes when its connection is not held.
type heldWriter struct {
	held *heldConnection
	to   io.Writer
}

func (w *heldWriter) Write(p []byte) (int, error) {
	w.held.wait()
	return w.to.Write(p)
}

// expectLast waits until the latest state of each object is one of states, and all of them are
// there.
func (f *following) expectLast(t *testing.T, states ...string) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		last := map[string]string{}
		for _, published := range f.all() {
			if state := strings.TrimLeft(published, "+~"); state != published {
				last[state[:1]] = state
			}
		}
		for _, want := range states {
			if last[want[:1]] != want {
				return fmt.Errorf("published: %q, not yet %q", f.all(), want)
			}
		}
		return nil
	})
}
