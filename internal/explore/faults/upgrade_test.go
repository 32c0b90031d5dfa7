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

	"github.com/yare-go/yare/internal/explore/faults"
	"github.com/yare-go/yare/kube"
)

// TestUpgradePasses checks that a request for exec becomes a connection of another protocol, and
// that the connection breaks with its session.
func TestUpgradePasses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(connection, buffered) // ends when the connection breaks
	}))
	t.Cleanup(server.Close)
	p := newProxy(t, faults.Options{Target: &kube.Config{Host: server.URL}, Namespace: "run"})
	session, err := p.Session("program")
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
	fmt.Fprintf(connection, "GET /api/v1/namespaces/run/pods/p/exec HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nAccept: application/json\r\n\r\n", address, config.BearerToken)
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
