package interop

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

// electorOfClientGo runs an elector of client-go. It returns a channel that is closed when the elector
// leads, and a function to end the elector.
func electorOfClientGo(t *testing.T, cluster *yaretest.Cluster, namespace, identity string) (leads chan struct{}, end func()) {
	t.Helper()
	client, err := coordinationv1.NewForConfig(clientgo.ToREST(cluster.Config()))
	if err != nil {
		t.Fatal(err)
	}
	leads = make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ships"}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leads) }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { elector.Run(ctx); close(ended) }()
	end = func() { cancel(); <-ended }
	t.Cleanup(end)
	return leads, end
}

// electorOfYare does what electorOfClientGo does, with the elector of yare.
func electorOfYare(t *testing.T, cluster *yaretest.Cluster, namespace, identity string) (leads <-chan struct{}, end func()) {
	t.Helper()
	fence := lease.NewFence(lease.SystemClock(), lease.DefaultTiming())
	fence.Handler(cluster.Client(t))
	elector, err := lease.New(lease.Config{
		Client: kube.NewClientFromHandler(fence.Transport()), Fence: fence,
		Namespace: namespace, Name: "ships", Identity: identity, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- elector.Run(ctx) }()
	t.Cleanup(cancel)
	return elector.Elected(), func() {
		cancel()
		err := <-ended
		if err == nil {
			err = elector.Release(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// Electors of client-go and of yare share a Lease: each stands by while the other leads, and takes the
// lease that the other has released.
func TestElectorOfClientGo(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	client := cluster.Client(t).InNamespaces(namespace)
	wait := func(who string, leads <-chan struct{}) {
		t.Helper()
		select {
		case <-leads:
		case <-time.After(time.Minute):
			t.Fatalf("%s does not lead", who)
		}
	}
	holder := func(want string) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			leases, err := lease.List(t.Context(), client, lease.StreamNamed("ships"))
			switch {
			case err != nil:
				return err
			case len(leases) != 1:
				return fmt.Errorf("there are %d leases", len(leases))
			case lease.Holder(leases[0]) != want:
				return fmt.Errorf("the holder is %q, not %q", lease.Holder(leases[0]), want)
			}
			return nil
		})
	}
	first, endFirst := electorOfClientGo(t, cluster, namespace, "first")
	wait("the elector of client-go", first)
	second, endSecond := electorOfYare(t, cluster, namespace, "second")
	select {
	case <-second:
		t.Fatal("yare takes the lease from client-go")
	case <-time.After(3 * time.Second):
	}
	endFirst()
	wait("the elector of yare", second)
	holder("second")
	third, endThird := electorOfClientGo(t, cluster, namespace, "third")
	select {
	case <-third:
		t.Fatal("client-go takes the lease from yare")
	case <-time.After(3 * time.Second):
	}
	endSecond()
	wait("the second elector of client-go", third)
	holder("third")
	endThird()
	holder("")
}
