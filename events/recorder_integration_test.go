package events_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// A real API server accepts what a recorder writes: events of objects with and without a
// namespace, series, and texts of every length.
func TestAPIServerAcceptsEvents(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	object, err := kube.Namespaced[corev1.ConfigMap](client, namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}})
	if err != nil {
		t.Fatal(err)
	}
	outside, err := kube.Everywhere[corev1.Namespace](client).Get(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	long := ""
	for range 1000 {
		long += "ü"
	}

	r := events.New("example.com/test")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Start(ctx, &controller.Runtime{Client: client, Log: slog.Default()}) }()
	r.Warning(object, "Broken", "Mend", "it is broken")
	r.Normal(object, long, long, "%s", long)
	r.Normal(outside, "Seen", "Look", "seen")
	yaretest.Eventually(t, func() error {
		if s := r.Stats(); s.Writes != 3 {
			return fmt.Errorf("the figures are %+v", s)
		}
		return nil
	})
	for range 4 {
		r.Warning(object, "Broken", "Mend", "it is broken")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); s.Dropped != 0 {
		t.Errorf("%d events were dropped", s.Dropped)
	}

	all, err := kube.Namespaced[eventsv1.Event](client, namespace).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var broken *eventsv1.Event
	for _, e := range all {
		if e.Reason == "Broken" {
			broken = e
		}
	}
	if len(all) != 2 || broken == nil || broken.Series == nil || broken.Series.Count != 5 || broken.Regarding.UID != object.UID {
		t.Errorf("the events are %+v", all)
	}
	found := false
	elsewhere, err := kube.Namespaced[eventsv1.Event](client, "default").List(t.Context())
	for _, e := range elsewhere {
		found = found || e.Regarding.UID == outside.UID && e.Regarding.Kind == "Namespace"
	}
	if !found {
		t.Error(errors.Join(errors.New("there is no event of the namespace"), err))
	}
	// The form that people read.
	if text := cluster.Kubectl(t, "", "describe", "configmap", "settings", "--namespace", namespace); !contains(text, "Broken", "(x5 over", "it is broken") {
		t.Error(text)
	}
}

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
