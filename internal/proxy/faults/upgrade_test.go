package faults_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
)

// TestUpgradePasses checks that a request for exec becomes a connection of another protocol. The connection
// breaks with its session. The server speaks HTTP/2 too, as an API server does.
func TestUpgradePasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, protocol string }{{"GET", "websocket"}, {"POST", "SPDY/3.1"}} {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Method + " " + r.Header.Get("Upgrade"); got != c.method+" "+c.protocol {
					t.Errorf("the server receives %s", got)
				}
				connection, buffered, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer connection.Close()
				fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", c.protocol)
				_, _ = io.Copy(connection, buffered) // ends when the connection breaks
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			t.Cleanup(server.Close)
			ca := testcert.PEM(server.Certificate())
			p := newProxy(t, faults.Options{Target: &kube.Config{Host: server.URL, CAData: ca}, Namespace: "run"})
			upgrade(t, p, c.method, c.protocol)
		})
	}
}

// upgrade sends a request for exec to a proxy, and checks that what the server returns is what it receives.
func upgrade(t *testing.T, p *faults.InjectingProxy, method, protocol string) {
	t.Helper()
	session, err := p.NewSession("program")
	if err != nil {
		t.Fatal(err)
	}
	config := session.Config()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	address := strings.TrimPrefix(config.Host, "https://")
	connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "%s /api/v1/namespaces/run/pods/p/exec HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: %s\r\nAccept: application/json\r\nContent-Length: 0\r\n\r\n", method, address, config.BearerToken, protocol)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade is answered with %s", response.Status)
	}
	fmt.Fprint(connection, "hello")
	echo := make([]byte, len("hello"))
	if _, err := io.ReadFull(reader, echo); err != nil || string(echo) != "hello" {
		t.Fatalf("the connection returns %q: %v", echo, err)
	}
	if a := p.Activity(); a.InFlight != 0 {
		t.Errorf("an open connection counts as a request in flight: %+v", a)
	}
	session.CutOff()
	if rest, err := io.ReadAll(reader); len(rest) != 0 {
		t.Errorf("after the session was cut off, the connection returns %q: %v", rest, err)
	}
}
