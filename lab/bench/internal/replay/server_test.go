package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/watch"
)

// newClient returns yare's own client of a replay server with n Shops.
func newClient(t *testing.T, n int) *kube.Client {
	t.Helper()
	server, path, err := loopback.StartWithFile(t.TempDir(), New(NewStore(n)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	config, _, err := kube.ConfigSource{Kubeconfig: path}.Load()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// checkShops fails t unless shops are the first n Shops of the workload, in the order of an API
// server.
func checkShops(t *testing.T, shops []*workload.Shop, n int) {
	t.Helper()
	if len(shops) != n {
		t.Fatalf("%d objects instead of %d", len(shops), n)
	}
	byKey := func(a, b *workload.Shop) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	}
	if !slices.IsSortedFunc(shops, byKey) {
		t.Error("the objects are not in the order of their names")
	}
	got := map[string]*workload.Shop{}
	uids := map[string]bool{}
	for _, shop := range shops {
		got[shop.Name] = shop
		uids[string(shop.UID)] = true
	}
	if len(uids) != n {
		t.Errorf("%d objects have %d uids", n, len(uids))
	}
	for i := range n {
		want := workload.NewShop(i)
		shop := got[want.Name]
		if shop == nil {
			t.Fatalf("%s is missing", want.Name)
		}
		if shop.Spec.Image != want.Spec.Image || len(shop.ManagedFields) != 2 || shop.ResourceVersion == "" {
			t.Errorf("%s is %+v", want.Name, shop)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	const n = 1234 // more than two pages
	shops, err := kube.Everywhere[workload.Shop](newClient(t, n)).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkShops(t, shops, n)
}

func TestPages(t *testing.T) {
	t.Parallel()
	server := New(NewStore(5))
	get := func(query string) (int, string) {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, collection+query, nil))
		return answer.Code, answer.Body.String()
	}
	for query, objects := range map[string]int{"": 5, "?limit=2": 2, "?limit=2&continue=2": 2, "?limit=2&continue=4": 1, "?limit=9": 5} {
		code, body := get(query)
		if n := strings.Count(body, `"kind":"Shop"`); code != http.StatusOK || n != objects {
			t.Errorf("%q is answered with %d and %d objects instead of %d", query, code, n, objects)
		}
		more := query == "?limit=2" || query == "?limit=2&continue=2"
		if strings.Contains(body, `"continue"`) != more {
			t.Errorf("whether %q has a next page is not %t: %s", query, more, body)
		}
	}
	if code, _ := get("?continue=x"); code != http.StatusBadRequest {
		t.Errorf("a wrong continue token is answered with %d", code)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	const n = 700
	var shops []*workload.Shop
	for event, err := range watch.Events(t.Context(), kube.Everywhere[workload.Shop](newClient(t, n))) {
		if err != nil {
			t.Fatal(err)
		}
		if added, ok := event.(watch.Added[workload.Shop]); ok {
			shops = append(shops, added.Object)
			continue
		}
		break // synced
	}
	checkShops(t, shops, n)
}

// A watch from a version is silent, and ends by its timeout.
func TestWatchFromVersion(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(New(NewStore(3)))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url := fmt.Sprintf("%s%s?watch=true&resourceVersion=%d&timeoutSeconds=1", server.URL, collection, firstVersion)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil && !errors.Is(err, io.EOF) || len(body) > 0 {
		t.Errorf("the watch brought %q, %v", body, err)
	}
}

// A watch shows the updates that are sent, in the form of the objects before them.
func TestUpdates(t *testing.T) {
	t.Parallel()
	store := NewStore(3)
	handler := New(store)
	server, path, err := loopback.StartWithFile(t.TempDir(), handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	config, _, err := kube.ConfigSource{Kubeconfig: path}.Load()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	updated := 0
	for event, err := range watch.Events(t.Context(), kube.Everywhere[workload.Shop](client)) {
		switch event := event.(type) {
		case watch.Added[workload.Shop]:
			uids[event.Object.Name] = string(event.Object.UID)
		case watch.Synced[workload.Shop]:
			for i := range store.Len() {
				update, _ := store.UpdateEvent(i, 7, i)
				if err := handler.Send(update); err != nil {
					t.Fatal(err)
				}
			}
		case watch.Modified[workload.Shop]:
			shop := event.Object
			before := workload.NewShop(updated)
			_, version := store.UpdateEvent(updated, 7, updated)
			if want := fmt.Sprintf("%s-7.%d", before.Spec.Image, updated); shop.Spec.Image != want || shop.Name != before.Name ||
				string(shop.UID) != uids[shop.Name] || shop.ResourceVersion != fmt.Sprint(version) || shop.Generation != 2 {
				t.Errorf("update %d: %+v", updated, shop)
			}
			updated++
		}
		if err != nil {
			t.Fatal(err)
		}
		if updated == store.Len() {
			break
		}
	}
}
