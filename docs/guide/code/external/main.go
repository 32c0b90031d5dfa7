// Command external reconciles Buckets, which exist outside of the cluster.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// BucketSpec is the desired state of a Bucket.
type BucketSpec struct {
	// The region of the bucket. It cannot be changed.
	Region string `json:"region" crd:"minLength=1,rule='self == oldSelf'"`
}

// BucketStatus is the observed state of a Bucket.
type BucketStatus struct {
	// Ready is true when the bucket exists.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Definition returns the definition of Buckets.
func (BucketSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Bucket", Columns: []kube.Column{
		{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
		{Name: "Reason", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].reason`},
	}}
}

// Bucket is a bucket of a storage service.
type Bucket = kube.CustomResource[BucketSpec, BucketStatus]

// storage is the client of the storage service. Both methods can be repeated. Their errors have the same text for the
// same cause.
type storage interface {
	// Ensure creates the bucket of an id unless it exists.
	Ensure(ctx context.Context, id, region string) error
	// Remove begins to delete the bucket of an id. It reports whether the bucket is gone.
	Remove(ctx context.Context, id string) (gone bool, err error)
}

type reconciler struct {
	storage storage
	events  *events.Recorder
}

func main() {
	r := reconciler{storage: inMemory{new(sync.Map)}, events: events.New("bucket-operator")}
	operator.Main(r.events, r.controller())
}

func (r reconciler) controller() *controller.Controller[Bucket] {
	return controller.New(r.reconcile,
		controller.Every(10*time.Minute),
		controller.Timeout(time.Minute),
		controller.Reconciled(controller.SkipOwnStatus()),
	).Finalizer("buckets.example.com/remove", r.cleanup)
}

func (r reconciler) reconcile(ctx context.Context, b *Bucket, c *kube.Client) (controller.Action, error) {
	// The uid names the bucket: it is the same after a crash, and another one for a new Bucket.
	if err := r.storage.Ensure(ctx, string(b.UID), b.Spec.Region); err != nil {
		kube.SetCondition(ctx, &b.Status.Conditions, b, "Ready", false, "StorageFailed", err.Error())
		return controller.Done(), errors.Join(c.ApplyStatus(ctx, b), err) // repeated with growing intervals
	}
	kube.SetCondition(ctx, &b.Status.Conditions, b, "Ready", true, "Exists", "The bucket exists.")
	return controller.Done(), c.ApplyStatus(ctx, b)
}

func (r reconciler) cleanup(ctx context.Context, b *Bucket, _ *kube.Client) (controller.Cleanup, error) {
	gone, err := r.storage.Remove(ctx, string(b.UID))
	if err != nil || !gone {
		return controller.CleanupRequeueAfter(10 * time.Second), err
	}
	r.events.Normal(b, "Removed", "Cleanup", "the bucket is gone")
	return controller.CleanupDone(), nil
}

// inMemory is a storage service for a first try.
type inMemory struct{ buckets *sync.Map }

func (m inMemory) Ensure(_ context.Context, id, region string) error {
	m.buckets.Store(id, region)
	return nil
}

func (m inMemory) Remove(_ context.Context, id string) (bool, error) {
	m.buckets.Delete(id)
	return true, nil
}
