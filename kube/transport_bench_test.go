package kube

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube/wire"
)

// BenchmarkWatchStream reads 10,000 events of 2 KB over HTTP/2 and TLS. It reports how often the
// client writes to its connection: nearly all these writes return flow-control credit.
func BenchmarkWatchStream(b *testing.B) {
	const events = 10_000
	event := `{"type":"ADDED","object":{"metadata":{"name":"p","resourceVersion":"1"},"data":"` + strings.Repeat("x", 1900) + `"}}` + "\n"
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		flusher := http.NewResponseController(w)
		for range events {
			if _, err := io.WriteString(w, event); err != nil || flusher.Flush() != nil {
				return
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var writes atomic.Int64
	client, err := NewClient(&Config{
		Host: server.URL, CAData: testcert.PEM(server.Certificate()),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return countedConn{conn, &writes}, err
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	streams, err := Everywhere[corev1.Pod](client).Streams()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(events * len(event)))
	b.ReportAllocs()
	for b.Loop() {
		response, err := client.Do(b.Context(), streams[0].Request(wire.VerbWatch))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range wire.Frames(response.BodyReader) {
			if err != nil {
				break
			}
			n++
		}
		response.BodyReader.Close()
		if n != events {
			b.Fatalf("read %d events", n)
		}
	}
	b.ReportMetric(float64(writes.Load())/float64(b.N), "writes/op")
}

// countedConn counts the writes to a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}
