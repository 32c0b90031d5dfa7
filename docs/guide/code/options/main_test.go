package main

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: the write of the status led to the next dump at once, and so on.
func TestADumpIsMadeOnceADay(t *testing.T) {
	t.Parallel()
	requests := 0
	client := kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		requests++
		return nil, errors.New("there is no server")
	}))
	d := &dumper{command: "pg_dumpall", recorder: events.New("dumper")}
	for age, want := range map[time.Duration]int{time.Hour: 0, 25 * time.Hour: 1} {
		requests = 0
		dump := &Dump{Spec: DumpSpec{Pod: "db-0"}, Status: DumpStatus{At: &metav1.Time{Time: time.Now().Add(-age)}}}
		dump.Namespace, dump.Name = "default", "daily"
		if _, err := d.reconcile(t.Context(), dump, client); (err != nil) != (want > 0) || requests != want {
			t.Errorf("%s after a dump there were %d requests, want %d: %v", age, requests, want, err)
		}
	}
}
