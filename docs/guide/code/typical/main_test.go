package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/docs/guide/code/typical/service"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

func TestTypicalOperator(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Database](t, cluster)
	yaretest.Define[User](t, cluster)
	namespace := cluster.Namespace(t)
	fake := &fakeService{databases: map[string]bool{}, isDown: true}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	yaretest.RunParts(t, cluster, reconciler{service.Client{URL: server.URL}}.parts()...)

	client := cluster.Client(t)
	databases, users := kube.Namespaced[Database](client, namespace), kube.Namespaced[User](client, namespace)
	for _, o := range []kube.Object{
		&Database{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}, Spec: DatabaseSpec{Secret: "admin"}},
		&User{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "anna"}, Spec: UserSpec{Database: "shop"}},
	} {
		if _, err := kube.Create(t.Context(), client, o); err != nil {
			t.Fatal(err)
		}
	}
	// Without the Secret nothing is tried, and users see why.
	waitForMessage(t, databases, "shop", `secrets "admin" not found`)
	waitForMessage(t, users, "anna", "its Database is not ready")

	// The Secret comes, but the service is down.
	_, err := kube.Create(t.Context(), client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "admin"}, Data: map[string][]byte{"password": []byte("open")}})
	if err != nil {
		t.Fatal(err)
	}
	waitForMessage(t, databases, "shop", "503 Service Unavailable")
	fake.setDown(false)
	shop := yaretest.WaitForCondition(t, databases, "shop", "Ready")
	yaretest.WaitForCondition(t, users, "anna", "Ready")
	if !fake.has(string(shop.UID)) {
		t.Error("the Database is ready, and the service does not have it")
	}

	if err := databases.Delete(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitUntilGone(t, databases, "shop")
	if fake.has(string(shop.UID)) {
		t.Error("the Database is gone, and the service has it still")
	}
}

// waitForMessage waits until the condition Ready of an object is False and its message contains text.
func waitForMessage[S kube.Defined](t *testing.T, api kube.API[kube.CustomResource[S, Status]], name, text string) {
	t.Helper()
	yaretest.WaitFor(t, api, name, func(o *kube.CustomResource[S, Status]) error {
		c := meta.FindStatusCondition(o.Status.Conditions, "Ready")
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, text) {
			return fmt.Errorf("the condition is %+v, want %q", c, text)
		}
		return nil
	})
}

// fakeService is the service of the test.
type fakeService struct {
	mu        sync.Mutex
	databases map[string]bool
	isDown    bool
}

func (f *fakeService) setDown(isDown bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isDown = isDown
}

func (f *fakeService) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.databases[id]
}

func (f *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, password, _ := r.BasicAuth()
	switch id := r.URL.Path[1:]; {
	case f.isDown:
		w.WriteHeader(http.StatusServiceUnavailable)
	case password != "open":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPut:
		f.databases[id] = true
	default:
		delete(f.databases, id)
	}
}
