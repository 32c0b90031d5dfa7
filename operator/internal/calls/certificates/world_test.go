package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// world has an API server, replicas of an operator, and API servers that call the replicas.
type world struct {
	t      *testing.T
	names  Names
	secret *secretClient
	// replicaClient is the client of replicas.
	replicaClient *kube.Client
	// deployment is the field of [Config].
	deployment string
	log        *logBuffer

	mu sync.Mutex
	// offset is the time of the world less that of the test, and serverError is the time of the API servers less that of the world.
	offset, serverError time.Duration
	// keys are the keys that the Secret had.
	keys [][]byte

	// replicasMu is held while a replica starts or ends, and while the time jumps: no call lasts for days.
	replicasMu sync.RWMutex
	replicas   []*replica
}

// newWorld returns a world with an API server in memory.
func newWorld(t *testing.T) *world {
	t.Helper()
	client := fakeserver.New().Client()
	return newWorldAt(t, client, client, "shop", names())
}

// newWorldAt returns a world with an API server. Replicas have a client of their own.
func newWorldAt(t *testing.T, client, replicaClient *kube.Client, namespace string, names Names) *world {
	t.Helper()
	w := &world{
		t: t, names: names, secret: newSecretClient(client, namespace, "web-webhooks"), replicaClient: replicaClient, log: new(logBuffer),
	}
	t.Cleanup(func() {
		w.stopAll()
		text := w.log.String()
		for _, key := range w.keys {
			if strings.Contains(text, string(key)) {
				t.Error("the log has a key")
			}
		}
		if strings.Contains(text, "PRIVATE") {
			t.Error("the log has a key")
		}
		if t.Failed() {
			t.Log(text)
		}
	})
	return w
}

// now returns the time of the world, by which replicas decide.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

// serverTime returns the time of the API servers.
func (w *world) serverTime() time.Time { return w.now().Add(w.serverError) }

// moveTime moves the time of the world, and waits until all replicas have done what is due then. Each replica notices the new time
// at once.
func (w *world) moveTime(d time.Duration) {
	w.t.Helper()
	w.replicasMu.Lock()
	w.mu.Lock()
	w.offset += d
	w.mu.Unlock()
	w.replicasMu.Unlock()
	for _, r := range w.all() {
		r.store.newlyLearned <- nil
	}
	w.waitUntilSettled()
}

// waitUntilSettled waits until nothing is due at any replica, and all have the same bundle as the Secret.
func (w *world) waitUntilSettled() {
	w.t.Helper()
	eventually(w.t, func() error {
		live := w.read()
		for i, r := range w.all() {
			if err := r.store.Ready(); err != nil {
				return fmt.Errorf("replica %d: %w", i, err)
			}
			s := r.store.Status()
			if s.CertificateLeft < servingLifetime-servingAge-time.Minute && s.CertificateLeft < s.AuthorityLeft-time.Minute || s.AuthorityLeft < authorityLifetime-rotationAge-time.Minute {
				return fmt.Errorf("replica %d: a renewal is due: %+v", i, s)
			}
			if !bytes.Equal(r.store.Bundle(), live.Data.Authorities) {
				return fmt.Errorf("replica %d has another bundle than the Secret", i)
			}
		}
		return nil
	})
}

// read returns the Secret.
func (w *world) read() *secret {
	w.t.Helper()
	state, err := w.secret.Read(w.t.Context(), w.secret.client)
	if err != nil {
		w.t.Fatal(err)
	}
	if block, _ := pem.Decode(state.Object.Data.Key); block != nil {
		w.mu.Lock()
		w.keys = append(w.keys, []byte(base64.StdEncoding.EncodeToString(block.Bytes))[:40])
		w.mu.Unlock()
	}
	return state.Object
}

// replace writes the data of the Secret, whatever it is, as somebody else.
func (w *world) replace(d data) {
	w.t.Helper()
	body, err := kube.Marshal(map[string]any{"data": d})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.secret.client.WithFieldManager("somebody").Do(w.t.Context(), &wire.Request{
		Verb: wire.VerbPatch, Resource: Resource(), Namespace: w.secret.Namespace, Name: w.secret.Name,
		ContentType: wire.ContentMergePatch, Body: body,
	}); err != nil {
		w.t.Fatal(err)
	}
}

// empty removes the data of the Secret.
func (w *world) empty() {
	w.t.Helper()
	if _, err := w.secret.client.Do(w.t.Context(), &wire.Request{
		Verb: wire.VerbPatch, Resource: Resource(), Namespace: w.secret.Namespace, Name: w.secret.Name,
		ContentType: wire.ContentMergePatch, Body: []byte(`{"data":null}`),
	}); err != nil {
		w.t.Fatal(err)
	}
}

// create creates the Secret without data, as the manifests do.
func (w *world) create() {
	w.t.Helper()
	if _, err := w.secret.client.Do(w.t.Context(), &wire.Request{
		Verb: wire.VerbCreate, Resource: Resource(), Namespace: w.secret.Namespace,
		Body: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + w.secret.Name + `"}}`),
	}); err != nil {
		w.t.Fatal(err)
	}
}

// delete deletes the Secret.
func (w *world) delete() {
	w.t.Helper()
	if _, err := w.secret.client.Do(w.t.Context(), &wire.Request{
		Verb: wire.VerbDelete, Resource: Resource(), Namespace: w.secret.Namespace, Name: w.secret.Name,
	}); err != nil {
		w.t.Fatal(err)
	}
}

// config returns the Config of a replica.
func (w *world) config() Config {
	return Config{
		Client: w.replicaClient, Namespace: w.secret.Namespace, Secret: w.secret.Name, Deployment: w.deployment, Names: w.names,
		Log: slog.New(slog.NewTextHandler(w.log, nil)), Now: w.now,
	}
}

// all returns the running replicas.
func (w *world) all() []*replica {
	w.replicasMu.RLock()
	defer w.replicasMu.RUnlock()
	return slices.Clone(w.replicas)
}

// start starts replicas. They need not be ready.
func (w *world) start(n int) []*replica {
	w.t.Helper()
	return w.startWithErrors(make([]time.Duration, n)...)
}

// startWithErrors starts replicas whose clocks differ from the time of the world.
func (w *world) startWithErrors(clockErrors ...time.Duration) []*replica {
	w.t.Helper()
	w.replicasMu.Lock()
	defer w.replicasMu.Unlock()
	var started []*replica
	for _, clockError := range clockErrors {
		c := w.config()
		c.Now = func() time.Time { return w.now().Add(clockError) }
		store, err := New(c)
		if err != nil {
			w.t.Fatal(err)
		}
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: store.GetCertificate, MinVersion: tls.VersionTLS12})
		if err != nil {
			w.t.Fatal(err)
		}
		r := &replica{store: store, listener: listener}
		ctx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		r.running.Go(func() {
			if err := store.Run(ctx); err != nil {
				w.t.Error(err)
			}
		})
		r.running.Go(r.serve)
		started = append(started, r)
	}
	w.replicas = append(w.replicas, started...)
	return started
}

// stop stops a replica, after the calls that are under way.
func (w *world) stop(r *replica) {
	w.replicasMu.Lock()
	defer w.replicasMu.Unlock()
	r.stop()
	w.replicas = slices.DeleteFunc(w.replicas, func(each *replica) bool { return each == r })
}

// stopAll stops all replicas.
func (w *world) stopAll() {
	for _, r := range w.all() {
		w.stop(r)
	}
}

// call calls all replicas as an API server with a bundle, each on a new connection.
func (w *world) call(bundle []byte) error {
	w.replicasMu.RLock()
	defer w.replicasMu.RUnlock()
	return w.callLocked(bundle)
}

func (w *world) callLocked(bundle []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle has no CA")
	}
	for i, r := range w.replicas {
		if !r.isReady.Load() && r.store.Ready() != nil {
			continue // it is no endpoint yet
		}
		r.isReady.Store(true)
		conn, err := tls.Dial("tcp", r.listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: w.names.String(), Time: w.serverTime})
		if err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
		conn.Close()
	}
	return nil
}

// mustCall fails the test if an API server with a bundle does not accept all replicas.
func (w *world) mustCall(bundle []byte) {
	w.t.Helper()
	if err := w.call(bundle); err != nil {
		w.t.Error(err)
	}
}

// replica is a Store and its server.
type replica struct {
	store    *Store
	listener net.Listener
	cancel   context.CancelFunc
	running  sync.WaitGroup
	// isReady is true once the replica has been ready.
	isReady atomic.Bool
}

// serve shakes hands with all who connect.
func (r *replica) serve() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() {
			defer conn.Close()
			_ = conn.(*tls.Conn).Handshake() // the caller has the error
		})
	}
}

func (r *replica) stop() {
	r.cancel()
	r.listener.Close()
	r.running.Wait()
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// counter counts calls.
type counter struct{ n atomic.Int64 }

func (c *counter) add()         { c.n.Add(1) }
func (c *counter) value() int64 { return c.n.Load() }

// eventually waits until try returns nil. Package yaretest has such a function, and imports this package.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
