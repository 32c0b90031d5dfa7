package operator_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/yare-go/yare/yaretest"
)

// link is a network between a program and the API server that passes bytes on, delays them, or keeps
// them as a network without a route does: until it works again, or until the sender resets the
// connection.
type link struct {
	listener   net.Listener
	target     string
	kubeconfig string

	mu sync.Mutex
	// delay is how long bytes are under way.
	delay time.Duration
	// isDown is true while nothing is passed on.
	isDown bool
	// changed is closed at the next change of isDown.
	changed chan struct{}
	conns   map[net.Conn]bool
	running sync.WaitGroup
}

// newLink starts a link to the server of a cluster. It ends after t.
func newLink(t *testing.T, cluster *yaretest.Cluster) *link {
	t.Helper()
	server, err := url.Parse(cluster.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range config.Clusters {
		each.Server = "https://" + listener.Addr().String()
	}
	l := &link{
		listener: listener, target: server.Host, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
		changed: make(chan struct{}), conns: make(map[net.Conn]bool),
	}
	if err := clientcmd.WriteToFile(*config, l.kubeconfig); err != nil {
		t.Fatal(err)
	}
	l.running.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) close() {
	l.listener.Close()
	l.setDown(false)
	l.mu.Lock()
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// setDelay sets how long bytes are under way, in each direction.
func (l *link) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// setDown ends the passing on of bytes, or lets it begin again.
func (l *link) setDown(isDown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown != isDown {
		l.isDown = isDown
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.connect(client) })
	}
}

// connect passes on what a client and the server send to each other.
func (l *link) connect(client net.Conn) {
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		client.Close()
		return
	}
	l.mu.Lock()
	l.conns[client], l.conns[server] = true, true
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pass(client, server) })
	both.Go(func() { l.pass(server, client) })
	both.Wait()
	client.Close()
	server.Close()
	l.mu.Lock()
	delete(l.conns, client)
	delete(l.conns, server)
	l.mu.Unlock()
}

// chunk is what was read at one moment.
type chunk struct {
	data []byte
	at   time.Time
}

// pass sends to to what it reads from from. If from ends the connection in an orderly way, the bytes
// before are passed on, as the kernel of a process that has ended does. If from resets it, they are
// not.
func (l *link) pass(from, to net.Conn) {
	chunks := make(chan chunk, 1<<16)
	reset := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		defer func() {
			select {
			case <-reset:
				_ = to.(*net.TCPConn).SetLinger(0) // the receiver sees a reset too
			default:
			}
			// The other direction ends with this one.
			to.Close()
			from.Close()
		}()
		for c := range chunks {
			if !l.wait(c.at, reset) {
				return
			}
			if _, err := to.Write(c.data); err != nil {
				return
			}
		}
	})
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			chunks <- chunk{data[:n], time.Now()}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				close(reset)
			}
			break
		}
	}
	close(chunks)
	writing.Wait()
}

// wait waits until bytes sent at that time arrive. It returns false if they never do, because the
// sender has reset the connection.
func (l *link) wait(sent time.Time, reset <-chan struct{}) bool {
	for {
		l.mu.Lock()
		isDown, changed, delay := l.isDown, l.changed, l.delay
		l.mu.Unlock()
		var arrival <-chan time.Time
		if !isDown {
			left := time.Until(sent.Add(delay))
			if left <= 0 {
				select {
				case <-reset:
					return false
				default:
					return true
				}
			}
			arrival = time.After(left)
		}
		select {
		case <-arrival:
		case <-changed:
		case <-reset:
			return false
		}
	}
}

// auditPolicy makes the API server log each write of ConfigMaps with its answer, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources: [{group: "", resources: [configmaps]}]
- level: None
`

// auditedCluster starts a control plane whose API server has an audit log, and returns the path of
// the log.
func auditedCluster(t *testing.T) (*yaretest.Cluster, string) {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return yaretest.New(t, yaretest.APIServerArgs(
		"--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-mode=blocking", "--audit-log-maxsize=2000")), log
}
