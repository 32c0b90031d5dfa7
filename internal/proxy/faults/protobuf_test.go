package faults_test

import (
	"bytes"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/internal/proxy"
)

// TestWritesInProtobufHavePoints checks that a write of client-go is identified by its name and its content.
// client-go sends built-in kinds in protobuf.
func TestWritesInProtobufHavePoints(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	program := newProgram(t, p, "program")
	begin(t, p, 0)
	pointOf := func(uid types.UID, digest, value string) proxy.Point {
		t.Helper()
		program.sendProtobuf(maps, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a-x2x9k", UID: uid, Annotations: map[string]string{"digest": digest}},
			Data:       map[string]string{"key": value},
		})
		requests := p.Requests()
		return requests[len(requests)-1].Point
	}
	first := pointOf("1", "10437386263213542146", "value")
	if first.Name != "a-*" || first.Verb != "create" {
		t.Errorf("the point is %+v", first)
	}
	if same := pointOf("2", "9437386263213542146", "value"); same.ChangeHash != first.ChangeHash || same.Occurrence != 2 {
		t.Errorf("the same write has the points %+v and %+v", first, same)
	}
	if other := pointOf("1", "10437386263213542146", "another value"); other.ChangeHash == first.ChangeHash {
		t.Errorf("two contents have the point %+v", other)
	}
}

// sendProtobuf creates an object as client-go does.
func (p *program) sendProtobuf(path string, object runtime.Object) {
	p.t.Helper()
	const media = "application/vnd.kubernetes.protobuf"
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	if !ok {
		p.t.Fatal("client-go writes no protobuf")
	}
	body, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.host+path, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	response, err := p.transport.RoundTrip(r)
	if err != nil {
		p.t.Fatal(err)
	}
	response.Body.Close()
}
