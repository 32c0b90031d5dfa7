package main

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWidget(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t) // a real control plane, started once for all tests
	yaretest.Define[Widget](t, cluster)
	namespace := cluster.Namespace(t)
	objects := kube.Namespaced[Widget](cluster.Client(t), namespace)
	maps := kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace)

	// The connection breaks after the first write. The operator goes on where it was.
	proxy := cluster.Proxy(t)
	proxy.CutAfterWrite(1)
	yaretest.RunParts(t, proxy, newController())
	if _, err := objects.Create(t.Context(), object(namespace, "")); !kube.IsInvalid(err) {
		t.Errorf("an empty text was not refused: %v", err)
	}
	if _, err := objects.Create(t.Context(), object(namespace, "Hello!")); err != nil {
		t.Fatal(err)
	}
	proxy.WaitForCut(t)
	proxy.Mend()
	yaretest.WaitForCondition(t, objects, "hello", "Ready")

	// Somebody deletes the ConfigMap. It comes back.
	if err := maps.Delete(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitFor(t, maps, "hello", func(m *corev1.ConfigMap) error {
		if m.Data["text"] != "Hello!" {
			return fmt.Errorf("the text is %q", m.Data["text"])
		}
		return nil
	})
}

func object(namespace, text string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"}, Spec: WidgetSpec{Text: text}}
}
