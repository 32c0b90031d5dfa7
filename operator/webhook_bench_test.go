package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
	"github.com/yare-go/yare/operator/internal/webhook/serving"
)

// BenchmarkWebhookCall is one call of a validator about an update of an object of 2 KB, over TLS on a connection that is
// kept, as API servers do. cpu-ns/op is the processor time of both ends together.
func BenchmarkWebhookCall(b *testing.B) {
	quiet := slog.New(slog.DiscardHandler)
	w := admission.Validator(allowGadget, admission.ValidatorOptions{})
	handler, err := admission.NewHandler([]*admission.Webhook{w}, admission.Options{Client: noServer(), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	certificate, bundle, err := certificates.InMemory(certificates.LoopbackNames())
	if err != nil {
		b.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := serving.Serve(listener, handler, serving.Options{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
		Log:            quiet, Fail: func(err error) { b.Error(err) },
	})
	defer server.Close(context.Background())
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	object := func(size int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a","namespace":"default","annotations":{"a":%q}},"spec":{"size":%d}}`,
			strings.Repeat("x", 1900), size))
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "1", "operation": "UPDATE", "name": "a", "namespace": "default", "kind": map[string]any{"group": "example.com", "version": "v1", "kind": "Gadget"},
		"userInfo": map[string]any{"username": "somebody"}, "object": object(2), "oldObject": object(1),
	}})
	if err != nil {
		b.Fatal(err)
	}
	url := "https://" + listener.Addr().String() + w.Path() + "?timeout=10s"
	call := func() {
		answer, err := client.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was read to its end
		if err != nil || !bytes.Contains(text, []byte(`"allowed":true`)) {
			b.Fatalf("%s, %v", text, err)
		}
	}
	call() // the handshake
	began := processorTime(b)
	b.ResetTimer()
	b.ReportAllocs()
	for range b.N {
		call()
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the processor time of this process in nanoseconds.
func processorTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
