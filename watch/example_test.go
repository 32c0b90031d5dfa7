package watch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

type stoneSpec struct {
	Size int `json:"size"`
}

func (stoneSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Stone"}
}

type stone = kube.CustomResource[stoneSpec, kube.None]

// stonesClient returns a client of a made-up server with one object, which changes and is deleted. A program has its
// client from operator.Main or kube.NewClient.
func stonesClient() *kube.Client {
	const events = `{"type":"ADDED","object":{"metadata":{"namespace":"default","name":"pebble","uid":"u","resourceVersion":"1"},"spec":{"size":1}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}
{"type":"MODIFIED","object":{"metadata":{"namespace":"default","name":"pebble","uid":"u","resourceVersion":"6"},"spec":{"size":6}}}
{"type":"DELETED","object":{"metadata":{"namespace":"default","name":"pebble","uid":"u","resourceVersion":"7"},"spec":{"size":6}}}
`
	return kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: http.StatusOK, BodyReader: io.NopCloser(strings.NewReader(events))}, nil
	}))
}

// sizeOf returns the size of the object of an event that has one.
func sizeOf(event watch.Event[stone]) int {
	switch e := event.(type) {
	case watch.Added[stone]:
		return e.Object.Spec.Size
	case watch.Modified[stone]:
		return e.Object.Spec.Size
	}
	return 0
}

// A program without a controller follows all objects of a kind. The loop goes on through broken watches and lost
// connections, and its events leave nothing out.
func ExampleEvents() {
	client := stonesClient()

	for event, err := range watch.Events(context.Background(), kube.Everywhere[stone](client)) {
		if err != nil {
			fmt.Println("in trouble:", err) // which is being dealt with
			continue
		}
		switch e := event.(type) {
		case watch.Added[stone]:
			fmt.Println("added", e.Object.Name, "of size", sizeOf(e))
		case watch.Modified[stone]:
			fmt.Println("modified", e.Object.Name, "to size", sizeOf(e))
		case watch.Synced[stone]:
			fmt.Println("that is all there is so far")
		case watch.Deleted[stone]:
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
func ExampleUntil() {
	client := stonesClient()
	pebble, err := watch.Until(context.Background(), kube.Namespaced[stone](client, "default"), "pebble", func(t *stone) (bool, error) {
		return t != nil && t.Spec.Size > 5, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("size", pebble.Spec.Size)
	// Output: size 6
}
