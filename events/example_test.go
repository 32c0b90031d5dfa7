package events_test

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// reconciler holds what the calls of a reconcile function share.
type reconciler struct {
	events *events.Recorder
}

func (r reconciler) reconcile(_ context.Context, s *corev1.Service, _ *kube.Client) (controller.Action, error) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return controller.Done(), nil
	}
	r.events.Warning(s, "NoAddresses", "AllocateAddress", "there are no addresses left for %s", s.Name)
	return controller.Done(), nil
}

// A recorder is a part of the program, and a field of the type that records with it.
func Example() {
	r := reconciler{events.New("example.com/addresses")}
	parts := []operator.Part{r.events, controller.New(r.reconcile)}
	// A main function calls operator.Main(parts...).
	fmt.Println(len(parts), "parts")
	// Output: 2 parts
}

// Equal occurrences are one Event with a count.
func ExampleRecorder_Warning() {
	server := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		var e eventsv1.Event
		if err := kube.Unmarshal(r.Body, &e); err != nil {
			return nil, err
		}
		fmt.Println(e.Type, e.Reason, e.Note, e.Series.Count)
		return &wire.Response{Code: 201, Body: r.Body}, nil
	})
	recorder := events.New("example.com/addresses")
	service := new(corev1.Service)
	service.Namespace, service.Name, service.UID = "default", "web", "4f6e"
	for range 3 {
		recorder.Warning(service, "NoAddresses", "AllocateAddress", "there are no addresses left for %s:", service.Name)
	}
	// The program that the recorder is a part of writes the event. This one ends at once.
	if err := operator.Run(context.Background(), kube.NewClientFromHandler(server), recorder, nothing()); err != nil {
		fmt.Println(err)
	}
	// Output: Warning NoAddresses there are no addresses left for web: 3
}

type job struct{}

func (job) Needs() (kube.Needs, error)                       { return kube.Needs{}, nil }
func (job) Start(context.Context, *controller.Runtime) error { return nil }

// nothing returns a part that ends at once.
func nothing() operator.Part { return job{} }

// A program without package operator runs the recorder itself, and looks whether events were lost.
func ExampleRecorder_Stats() {
	server := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: 201, Body: r.Body}, nil
	})
	recorder := events.New("example.com/addresses")
	needs, err := recorder.Needs() // the permissions to create and patch events
	fmt.Println(len(needs.Access), err)
	service := new(corev1.Service)
	service.Namespace, service.Name, service.UID = "default", "web", "4f6e"
	recorder.Normal(service, "Allocated", "AllocateAddress", "the address of %s is 10.0.0.7", service.Name)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the recorder writes what it has, and ends
	if err := recorder.Start(ctx, &controller.Runtime{Client: kube.NewClientFromHandler(server), Log: slog.New(slog.DiscardHandler)}); err != nil {
		fmt.Println(err)
	}
	var stats events.Stats = recorder.Stats()
	fmt.Println(stats.Recorded, stats.Writes, stats.Dropped)
	// Output:
	// 1 <nil>
	// 1 1 0
}
