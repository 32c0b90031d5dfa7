package engine

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The newest process that listens answers the calls, at one address for all of them. Programs with addresses of their own changed
// their conversions at each start, which ended all watches of their kinds, so that each run of an exploration was made three times.
func TestWebhookFront(t *testing.T) {
	t.Parallel()
	front, err := newWebhookFront()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.close)
	folder, address := t.TempDir(), ""
	start := func(name string) (end func()) {
		t.Helper()
		variables, err := front.addProcess(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]string)
		for _, v := range variables {
			key, value, _ := strings.Cut(v, "=")
			values[key] = value
		}
		if address != "" && values["YARE_WEBHOOKS_URL"] != address {
			t.Errorf("%s has the address %s, and an earlier process %s", name, values["YARE_WEBHOOKS_URL"], address)
		}
		address = values["YARE_WEBHOOKS_URL"]
		listener, err := net.Listen("unix", values["YARE_WEBHOOKS_SOCKET"])
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// A server that answers before it has read the body may close the connection while the body is written.
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, name, r.URL)
		})}
		go func() { _ = server.Serve(listener) }()
		end = func() { _ = server.Close() }
		t.Cleanup(end)
		return end
	}
	endFirst, endSecond := start("first"), start("second")
	authority, err := os.ReadFile(filepath.Join(folder, "first.webhooks-ca"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	call := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/convert?timeout=30s", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return "cut off"
		}
		defer response.Body.Close()
		answer, _ := io.ReadAll(response.Body)
		return string(answer)
	}
	for _, test := range []struct {
		end  func()
		want string
	}{{func() {}, "second/convert?timeout=30s"}, {endSecond, "first/convert?timeout=30s"}, {endFirst, "cut off"}} {
		test.end()
		if got := call(); got != test.want {
			t.Errorf("a call gets %q, want %q", got, test.want)
		}
	}
}
