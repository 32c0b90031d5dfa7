package operator_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/serving"
	"github.com/yare-go/yare/operator/webhook"
)

// BenchmarkWebhookCall is one call of a validator about an update of an object of 2 KB, over TLS on a connection that is
// kept, as API servers do. cpu-ns/op is the processor time of the program without that of the caller.
func BenchmarkWebhookCall(b *testing.B) {
	s := newService(slog.New(slog.DiscardHandler))
	handler := handlerOf(b, s.Program, webhook.Validate(allowGadget))
	if err := handler.Prepare(s); err != nil {
		b.Fatal(err)
	}
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
	benchmarkCalls(b, handler, "/validate.gadgets.example.com/v1", body, `"allowed":true`)
}

// benchmarkTemplate is a template of Pods, with which an object has 2 KB.
var benchmarkTemplate = `{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"main","image":"registry.example.com/app:1","args":["` +
	strings.Repeat(`an-argument-of-the-program","`, 30) + `"],"env":[{"name":"A","value":"1"},{"name":"B","value":"` + strings.Repeat("x", 850) + `"}]}]}}`

type (
	benchmarkSpec1 struct {
		Schedule string                 `json:"schedule"`
		Template corev1.PodTemplateSpec `json:"template"`
	}
	benchmarkSpec2 struct {
		Minute   string                 `json:"minute,omitempty"`
		Template corev1.PodTemplateSpec `json:"template"`
	}
	benchmark1 = kube.CustomResource[benchmarkSpec1, kube.None]
	benchmark2 = kube.CustomResource[benchmarkSpec2, kube.None]
)

func (benchmarkSpec1) Definition() kube.Definition {
	return kube.Definition{Group: "benchmarks.example.com", Version: "v1", Kind: "Timer", Storage: true}
}

func (benchmarkSpec2) Definition() kube.Definition {
	return kube.Definition{Group: "benchmarks.example.com", Version: "v2", Kind: "Timer"}
}

// BenchmarkConversionCall is one call that converts an object of 2 KB, one value of which an annotation keeps, over TLS on a
// connection that is kept, as API servers do. cpu-ns/op is the processor time of the program without that of the caller.
func BenchmarkConversionCall(b *testing.B) { benchmarkConversion(b, 1) }

// BenchmarkConversionList is one call that converts 50 objects of 2 KB, as for a list. cpu-ns/object is the processor time of
// the program for each of them.
func BenchmarkConversionList(b *testing.B) { benchmarkConversion(b, 50) }

// benchmarkConversion measures calls that convert as many objects each.
func benchmarkConversion(b *testing.B, objectCount int) {
	b.Helper()
	s := newService(slog.New(slog.DiscardHandler))
	handler := handlerOf(b, s.Program, conversion.Between(func(a *benchmark1, b *benchmark2) {
		b.Spec.Template = a.Spec.Template
		if a.Spec.Schedule != "@hourly" {
			b.Spec.Minute = a.Spec.Schedule
		}
	}, func(b *benchmark2, a *benchmark1) { a.Spec.Template, a.Spec.Schedule = b.Spec.Template, b.Spec.Minute }))
	if err := handler.Prepare(s); err != nil {
		b.Fatal(err)
	}
	object := `{"apiVersion":"benchmarks.example.com/v1","kind":"Timer","metadata":{"name":"a","namespace":"default","uid":"u"},"spec":{"schedule":"@hourly","template":` + benchmarkTemplate + `}}`
	body, err := json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": map[string]any{
		"uid": "1", "desiredAPIVersion": "benchmarks.example.com/v2", "objects": slices.Repeat([]json.RawMessage{json.RawMessage(object)}, objectCount),
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("the object has %d bytes", len(object))
	perCall := benchmarkCalls(b, handler, "/convert.timers.benchmarks.example.com", body, `versions.yare.dev/v1.`)
	b.ReportMetric(perCall/float64(objectCount), "cpu-ns/object")
}

// benchmarkCalls measures calls of a handler over TLS, whose answers contain a text. Another process makes the calls. It returns
// the processor time of a call in nanoseconds, which it also reports.
func benchmarkCalls(b *testing.B, handler http.Handler, path string, body []byte, want string) float64 {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
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
	caller, err := startCaller(b.Context(), callerSettings{
		URL: "https://" + listener.Addr().String() + path + "?timeout=10s", Bundle: bundle, Body: body, Want: want,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := caller.end(); err != nil {
			b.Error(err)
		}
	}()
	call := func(n int) {
		if err := caller.call(n); err != nil {
			b.Fatal(err)
		}
	}
	call(1) // the handshake
	began := processorTime(b)
	b.ResetTimer()
	b.ReportAllocs()
	call(b.N)
	perCall := float64(processorTime(b)-began) / float64(b.N)
	b.ReportMetric(perCall, "cpu-ns/op")
	return perCall
}

// processorTime returns the processor time of this process in nanoseconds.
func processorTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
