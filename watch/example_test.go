package watch_test

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

func ExampleEvents() {
	// A program has its client from operator.Main or kube.NewClient. This one's server is
	// made up.
	client := kube.NewClientFromHandler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		return stream(added(object("pebble", 1)), endOfList("5"), modified(object("pebble", 6)), deleted(object("pebble", 7)), hang())(r)
	}))

	for event, err := range watch.Events(context.Background(), kube.Everywhere[thing](client)) {
		if err != nil {
			fmt.Println("in trouble:", err) // which is being dealt with
			continue
		}
		switch e := event.(type) {
		case watch.Added[thing]:
			fmt.Println("added", e.Object.Name, "of size", e.Object.Spec.Size)
		case watch.Modified[thing]:
			fmt.Println("modified", e.Object.Name, "to size", e.Object.Spec.Size)
		case watch.Synced[thing]:
			fmt.Println("that is all there is so far")
		case watch.Deleted[thing]:
			fmt.Println("deleted", e.Object.Name)
			return // the watch ends with the loop
		}
	}
	// Output:
	// added pebble of size 1
	// that is all there is so far
	// modified pebble to size 6
	// deleted pebble
}

// A command waits until an object is as it has to be.
func ExampleWaitFor() {
	client := kube.NewClientFromHandler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		return stream(added(object("pebble", 1)), endOfList("5"), modified(object("pebble", 6)), hang())(r)
	}))
	pebble, err := watch.WaitFor(context.Background(), kube.Namespaced[thing](client, "default"), "pebble", func(t *thing) (bool, error) {
		return t != nil && t.Spec.Size > 5, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("size", pebble.Spec.Size)
	// Output: size 6
}
