package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
	"github.com/yare-go/yare/yaretest"
)

// Promise 2: a real server streams its lists, so that there is only one request.
func TestServerStreamsTheList(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := withThings(t, cluster)
	one, two, other := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	apply(t, client, newThing(one, "a", 1), newThing(two, "b", 1), newThing(other, "c", 1))
	f := followThings(t, client.InNamespaces(one, two))
	f.expect(t, "[ +a1 +b1 ] =")
	apply(t, client, newThing(one, "a", 2), newThing(other, "c", 2))
	f.expect(t, "[ +a1 +b1 ] = ~a2")
	remove(t, client, two, "b")
	f.expect(t, "[ +a1 +b1 ] = ~a2 -b1")
	// A list that the server is too busy for may be asked for again.
	if lists := f.count("list"); lists > 0 || f.count("watch all") < 2 || f.count("watch from") > 0 {
		t.Errorf("asked: %v", f.asked)
	}
}

// An object that moves out of a selector is deleted for its watch, in the last matching
// state. It is added when it moves in again.
func TestSelectorsOnAServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	narrow := client.InNamespaces(namespace)
	apply(t, client, newThing(namespace, "a", 1, "team=red"), newThing(namespace, "b", 1, "team=blue"))
	red := followThings(t, narrow, kube.Label("team", "red"))
	onlyB := followThings(t, narrow, kube.Field("metadata.name", "b"))
	red.expect(t, "+a1 =")
	onlyB.expect(t, "+b1 =")
	apply(t, client, newThing(namespace, "a", 2, "team=blue")) // out
	red.expect(t, "+a1 = -a1")
	apply(t, client, newThing(namespace, "b", 2, "team=red")) // in
	red.expect(t, "+a1 = -a1 +b2")
	apply(t, client, newThing(namespace, "a", 3, "team=red")) // in again
	red.expect(t, "+a1 = -a1 +b2 +a3")
	remove(t, client, namespace, "b")
	red.expect(t, "+a1 = -a1 +b2 +a3 -b2")
	onlyB.expect(t, "+b1 = ~b2 -b2")
}

// pebble is a kind whose definition comes and goes.
type pebbleSpec struct {
	Size int `json:"size"`
}

func (pebbleSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Pebble"}
}

type pebble = kube.CustomResource[pebbleSpec, kube.None]

// A definition that is missing at first, deleted, and put back: the objects that went with
// it are deleted, and the new ones are seen.
func TestDefinitionComesAndGoes(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	published := make(chan string)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		for e, err := range watch.Events(ctx, kube.Namespaced[pebble](client, namespace)) {
			text := ""
			switch e := e.(type) {
			case watch.Added[pebble]:
				text = "+" + e.Object.Name
			case watch.Deleted[pebble]:
				text = "-" + e.Object.Name
			case watch.Synced[pebble]:
				text = "="
			case nil:
				if kube.IsNoResource(err) {
					text = "missing"
				}
			}
			select {
			case published <- text:
			case <-ctx.Done():
				return
			}
		}
	})
	// next waits for the next event, and skips reports.
	next := func(want string) {
		t.Helper()
		for text := range published {
			if text == want {
				return
			}
			if text != "" && text != "missing" {
				t.Fatalf("published %q, and not %q", text, want)
			}
		}
	}
	next("missing")
	defined, err := kube.TypeOf[pebble]()
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		t.Helper()
		cluster.Define(t, defined)
		_, err := kube.Namespaced[pebble](client, namespace).Create(t.Context(), &pebble{ObjectMeta: newThing(namespace, name, 0).ObjectMeta})
		if err != nil {
			t.Fatal(err)
		}
	}
	cluster.Define(t, defined)
	next("=")
	create("a")
	next("+a")
	cluster.Kubectl(t, "", "delete", "crd", "pebbles.example.com")
	next("-a")
	create("b")
	next("+b")
	// For a second run in this process, too, which shares the control plane.
	cluster.Kubectl(t, "", "delete", "crd", "pebbles.example.com")
	next("-b")
}

// Promises 1, 2, 3 and 6 on a real server that is broken on purpose. One control plane for
// all, because each of them is a burden on a small machine; so they run one by one.
func TestServerBreaks(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t)
	client := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	narrow := client.InNamespaces(namespace)
	put := func(things ...*thing) { t.Helper(); apply(t, client, things...) }

	put(newThing(namespace, "a", 1), newThing(namespace, "b", 1))
	f := followThings(t, narrow)
	want := "[ +a1 +b1 ] ="
	f.expect(t, want)
	then := func(t *testing.T, published string) { t.Helper(); want += " " + published; f.expect(t, want) }

	t.Run("the API server is restarted", func(t *testing.T) {
		cluster.Restart(t, yaretest.APIServer)
		put(newThing(namespace, "a", 2))
		then(t, "~a2")
	})
	t.Run("the API server is killed, and changes are made before the watch is back", func(t *testing.T) {
		f.sever()
		cluster.Kill(t, yaretest.APIServer)
		cluster.StartComponent(t, yaretest.APIServer)
		put(newThing(namespace, "a", 3), newThing(namespace, "c", 1))
		remove(t, client, namespace, "b")
		f.mend()
		// It depends on the memory of the new API server whether that is published one by one
		// or as a difference.
		yaretest.Eventually(t, func() error {
			got := strings.TrimPrefix(strings.Join(f.all(), " "), "")
			for _, part := range []string{" ~a3", " +c1", " -b"} {
				if strings.Count(got, part) != 1 {
					return fmt.Errorf("published %s, in which %q is not there once", got, part)
				}
			}
			return nil
		})
		want = strings.Join(f.all(), " ")
	})
	t.Run("a version that is too old: 410", func(t *testing.T) {
		lists := f.count("watch all")
		f.sever()
		remove(t, client, namespace, "a")
		put(newThing(namespace, "a", 9)) // another under the same name
		remove(t, client, namespace, "c")
		put(newThing(namespace, "d", 1))
		cluster.Compact(t)
		cluster.Restart(t, yaretest.APIServer)
		f.mend()
		then(t, "[ -a? +a9 -c? +d1 ]")
		if f.count("watch all") == lists {
			t.Error("there was no fresh list: this was no 410")
		}
	})
	t.Run("the API server is silent", func(t *testing.T) {
		before := f.count("watch")
		cluster.Pause(t, yaretest.APIServer)
		resumed := false
		resume := func() {
			if !resumed {
				resumed = true
				cluster.Resume(t, yaretest.APIServer)
			}
		}
		t.Cleanup(resume)
		var noticed error
		for range 3 { // each waits for a minute at most
			if noticed = waitUntil(t, func() bool { return f.count("watch") > before }); noticed == nil {
				break
			}
		}
		if noticed != nil {
			t.Error("the watch did not notice")
		}
		resume()
		put(newThing(namespace, "d", 2))
		then(t, "~d2")
	})
	t.Run("etcd is killed", func(t *testing.T) {
		cluster.Kill(t, yaretest.Etcd)
		cluster.StartComponent(t, yaretest.Etcd)
		yaretest.Eventually(t, func() error {
			_, err := kube.Apply(t.Context(), client, newThing(namespace, "d", 3))
			return err
		})
		then(t, "~d3")
	})
}

// waitUntil waits for longer than one Eventually does.
func waitUntil(t *testing.T, done func() bool) error {
	t.Helper()
	for range 1500 {
		if done() {
			return nil
		}
		select {
		case <-t.Context().Done():
			return t.Context().Err()
		case <-tick():
		}
	}
	return errors.New("not yet")
}

// Promise 2 without streaming lists: the state comes in pages.
func TestServerWithoutStreamingLists(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t, yaretest.APIServerArgs("--feature-gates=WatchList=false"))
	client := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	narrow := client.InNamespaces(namespace)
	const many = 1200
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < many; i += 8 {
				if _, err := kube.Namespaced[thing](client, namespace).Create(t.Context(), newThing(namespace, fmt.Sprintf("t%04d", i), i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	f := followThings(t, narrow)
	yaretest.Eventually(t, func() error {
		if published := f.all(); len(published) < many+1 {
			return fmt.Errorf("published of %d", len(published))
		}
		return nil
	})
	published := f.all()
	for i := range many {
		if want := fmt.Sprintf("+t%04d%d", i, i); published[i] != want {
			t.Fatalf("the event %d is %s, not %s", i, published[i], want)
		}
	}
	if lists := f.count("list"); lists < 3 || published[many] != "=" {
		t.Errorf("%d pages, and then %s", lists, published[many])
	}
	// A gap that the server does not remember.
	f.sever()
	remove(t, client, namespace, "t0007")
	apply(t, client, newThing(namespace, "t0009", 0))
	cluster.Compact(t)
	cluster.Restart(t, yaretest.APIServer)
	f.mend()
	f.expect(t, strings.Join(published, " ")+" ~t00090 -t0007?")
	apply(t, client, newThing(namespace, "t0009", 1))
	f.expect(t, strings.Join(published, " ")+" ~t00090 -t0007? ~t00091")
}

// A server that asks etcd for everything.
func TestServerWithoutWatchCache(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t, yaretest.APIServerArgs("--watch-cache=false"))
	client := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	apply(t, client, newThing(namespace, "a", 1), newThing(namespace, "b", 1))
	f := followThings(t, client.InNamespaces(namespace))
	f.expect(t, "[ +a1 +b1 ] =")
	f.sever()
	apply(t, client, newThing(namespace, "a", 2))
	remove(t, client, namespace, "b")
	f.mend()
	f.expect(t, "[ +a1 +b1 ] = ~a2 -b1")
	f.sever()
	remove(t, client, namespace, "a")
	apply(t, client, newThing(namespace, "a", 3))
	cluster.Compact(t)
	f.mend()
	f.expect(t, "[ +a1 +b1 ] = ~a2 -b1 -a? +a3")
}
