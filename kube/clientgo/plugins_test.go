package clientgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/testkit/executable"
	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
)

// plugin is a credential plugin whose outputs are files: 1 for its first run, and so on. The
// last output is repeated.
type plugin struct{ folder, path string }

func newPlugin(t *testing.T, outputs ...string) plugin {
	t.Helper()
	p := plugin{folder: t.TempDir()}
	for i, output := range outputs {
		write(t, filepath.Join(p.folder, fmt.Sprint(i+1)), []byte(output))
	}
	p.path = filepath.Join(p.folder, "plugin")
	text := fmt.Sprintf(`#!/bin/sh
cd %q
echo "$KUBERNETES_EXEC_INFO" >> infos
echo "$* $MORE" >> args
n=$(($(wc -l < args)))
while [ ! -e $n ]; do n=$((n - 1)); done
cat $n
`, p.folder)
	executable.Write(t, p.path, text)
	return p
}

// lines returns the lines of a file that the plugin wrote.
func (p plugin) lines(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// credential returns the ExecCredential with a status.
func credential(t *testing.T, version string, status map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/" + version, "kind": "ExecCredential", "status": status})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPluginsRunAsWithClientGo sends three requests with each plugin, and compares what the
// server and the plugin saw. One case is left out: if a certificate expires between the request
// and its handshake, client-go cuts the connection that it is making, and yare does not. When the plugin returns
// another certificate, client-go closes its connections, and the transport may use a closed connection for the next
// request ("use of closed network connection"). That request is sent once more.
func TestPluginsRunAsWithClientGo(t *testing.T) {
	t.Parallel()
	cert1, key1 := testcert.NewClient(t, "one")
	cert2, key2 := testcert.NewClient(t, "two")
	past, future := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	type status = map[string]any
	withCert := func(cert, key []byte, more status) status {
		more["clientCertificateData"], more["clientKeyData"] = string(cert), string(key)
		return more
	}
	for name, test := range map[string]struct {
		version  string
		statuses []status
		config   func(*kube.Config)
	}{
		"token":                       {statuses: []status{{"token": "a"}, {"token": "b"}}},
		"beta":                        {version: "v1beta1", statuses: []status{{"token": "a"}}},
		"that expires":                {statuses: []status{{"token": "a", "expirationTimestamp": past}, {"token": "b", "expirationTimestamp": future}, {"token": "c"}}},
		"that is refused":             {statuses: []status{{"token": "refused"}, {"token": "b"}, {"token": "c"}}},
		"certificate":                 {statuses: []status{withCert(cert1, key1, status{}), {"token": "b"}}},
		"certificate that is refused": {statuses: []status{withCert(cert1, key1, status{"token": "refused"}), withCert(cert2, key2, status{"token": "b"})}},
		"certificate after a token":   {statuses: []status{{"token": "refused"}, withCert(cert2, key2, status{})}},
		"cluster info":                {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.Exec.ProvideClusterInfo = true; c.DisableCompression = true }},
		"cluster info with settings": {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) {
			c.Exec.ProvideClusterInfo, c.Exec.ClusterConfig = true, []byte(`{"audience":"x"}`)
		}},
		"beside a token":            {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.BearerToken = "own" }},
		"beside a certificate":      {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.CertData, c.KeyData = cert1, key1 }},
		"interactive":               {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.Exec.InteractiveMode = "IfAvailable" }},
		"without a status":          {statuses: []status{nil}},
		"without credentials":       {statuses: []status{{}}},
		"certificate without a key": {statuses: []status{{"clientCertificateData": string(cert1)}}},
		"no certificate":            {statuses: []status{{"clientCertificateData": "x", "clientKeyData": "y"}}},
		"always interactive":        {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.Exec.InteractiveMode = "Always" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			version := test.version
			if version == "" {
				version = "v1"
			}
			var outputs []string
			for _, s := range test.statuses {
				outputs = append(outputs, credential(t, version, s))
			}
			type record struct {
				Requests []string
				Errors   int
				Infos    []any
				Args     []string
			}
			records := map[string]record{}
			for _, who := range []string{"yare", "client-go"} {
				p := newPlugin(t, outputs...)
				config := &kube.Config{Host: b.URL, CAData: b.ca(), Exec: &kube.ExecConfig{
					Command: p.path, Args: []string{"x", "y z"}, Env: []string{"MORE=m=n"}, APIVersion: "client.authentication.k8s.io/" + version,
					InteractiveMode: "Never",
				}}
				if test.config != nil {
					test.config(config)
				}
				transport := both(t, config)[who]
				var r record
				for range 3 {
					s, err := b.ask(t, transport, http.Header{})
					for who == "client-go" && errors.Is(err, net.ErrClosed) {
						s, err = b.ask(t, transport, http.Header{})
					}
					if err != nil {
						r.Errors++
						t.Logf("%s: %v", who, err)
						continue
					}
					r.Requests = append(r.Requests, s.Header.Get("Authorization")+" "+s.Certificate)
				}
				if _, err := os.Stat(filepath.Join(p.folder, "infos")); err == nil {
					for _, line := range p.lines(t, "infos") {
						var info any
						if err := json.Unmarshal([]byte(line), &info); err != nil {
							t.Fatal(err)
						}
						r.Infos = append(r.Infos, info)
					}
					r.Args = p.lines(t, "args")
				}
				if who == "client-go" && r.Errors == 3 && len(r.Infos) > 0 {
					// yare runs a plugin that fails again after a pause, and client-go runs it for each request.
					r.Infos, r.Args = r.Infos[:1], r.Args[:1]
				}
				records[who] = r
				closeIdle(transport)
			}
			if diff := cmp.Diff(records["client-go"], records["yare"]); diff != "" {
				t.Errorf("differs from client-go (-):\n%s", diff)
			}
			if name == "that is refused" && len(records["yare"].Infos) != 2 {
				t.Errorf("the plugin ran %d times", len(records["yare"].Infos))
			}
		})
	}
}

// TestPluginFails checks the errors of plugins that do not work. The output of these plugins stays secret.
func TestPluginFails(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	fails := filepath.Join(t.TempDir(), "fails")
	executable.Write(t, fails, "#!/bin/sh\necho secret; exit 3\n")
	for name, test := range map[string]struct {
		exec kube.ExecConfig
		want []string
	}{
		"missing":         {kube.ExecConfig{Command: "/does/not/exist", InstallHint: "Install it by\nhand."}, []string{"/does/not/exist", "no such file", "Install it by\nhand."}},
		"missing in PATH": {kube.ExecConfig{Command: "does-not-exist-anywhere", InstallHint: "Install it."}, []string{"does-not-exist-anywhere", "not found in $PATH", "Install it."}},
		"fails":           {kube.ExecConfig{Command: fails, InstallHint: "Install it."}, []string{fails, "exit status 3"}},
		"other text":      {kube.ExecConfig{Command: newPlugin(t, "secret").path}, []string{"no ExecCredential"}},
		"broken JSON":     {kube.ExecConfig{Command: newPlugin(t, `{"secret`).path}, []string{"no ExecCredential"}},
		"other version":   {kube.ExecConfig{Command: newPlugin(t, credential(t, "v1beta1", map[string]any{"token": "secret"})).path}, []string{"v1beta1", "not an ExecCredential of client.authentication.k8s.io/v1"}},
		"other kind":      {kube.ExecConfig{Command: newPlugin(t, `{"kind":"Secret","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"secret"}}`).path}, []string{`"Secret"`}},
		"no credentials":  {kube.ExecConfig{Command: newPlugin(t, credential(t, "v1", map[string]any{})).path}, []string{"neither a token nor a client certificate"}},
		"always":          {kube.ExecConfig{Command: fails, InteractiveMode: "Always"}, []string{"needs a terminal"}},
	} {
		test.exec.APIVersion = "client.authentication.k8s.io/v1"
		if test.exec.InteractiveMode == "" {
			test.exec.InteractiveMode = "Never"
		}
		for who, transport := range both(t, &kube.Config{Host: b.URL, CAData: b.ca(), Exec: &test.exec}) {
			_, err := b.ask(t, transport, http.Header{})
			if err == nil {
				t.Errorf("%s by %s: no error", name, who)
			}
			for _, want := range test.want {
				if who == "yare" && err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
					t.Errorf("%s: the error is %v, without %q", name, err, want)
				}
			}
		}
	}
}

// TestPluginRunsOnceForRequestsAtATime sends requests at the same time.
func TestPluginRunsOnceForRequestsAtATime(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := newPlugin(t, credential(t, "v1", map[string]any{"token": "a"}))
	transport, err := kube.NewRoundTripper(&kube.Config{Host: b.URL, CAData: b.ca(), Exec: &kube.ExecConfig{
		Command: p.path, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never",
	}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := b.ask(t, transport, http.Header{})
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(p.lines(t, "infos")); n != 1 {
		t.Errorf("the plugin ran %d times", n)
	}
}

// TestPluginEndsWithItsCaller checks that a hanging plugin ends with the context of the request. Another request
// waits for the plugin no longer than its own context.
func TestPluginEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	hangs := filepath.Join(t.TempDir(), "hangs")
	started := filepath.Join(t.TempDir(), "started")
	executable.Write(t, hangs, fmt.Sprintf("#!/bin/sh\ntouch %q\nexec sleep 1000\n", started))
	transport, err := kube.NewRoundTripper(&kube.Config{Host: "https://192.0.2.1", Exec: &kube.ExecConfig{
		Command: hangs, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never",
	}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://192.0.2.1", nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	first, cancelFirst := context.WithCancel(t.Context())
	firstDone := make(chan error, 1)
	go func() { firstDone <- send(first) }()
	for {
		if _, err := os.Stat(started); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	second, cancelSecond := context.WithCancel(t.Context())
	secondDone := make(chan error, 1)
	go func() { secondDone <- send(second) }()
	cancelSecond()
	if err := <-secondDone; err == nil {
		t.Error("the second request has an answer")
	}
	cancelFirst()
	if err := <-firstDone; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("the first request: %v", err)
	}
}
