package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// TestObjectsInNoNamespaceAreRemoved checks that the objects of a program outside of namespaces are recorded
// and removed after the run. The program may not change the namespaces of others.
func TestObjectsInNoNamespaceAreRemoved(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		received = append(received, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/api/v1/nodes":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"metadata":{"name":"node-x2x9k"}}`)
		case r.Method == http.MethodPost, r.Method == http.MethodPatch && r.URL.Query().Get("fieldManager") == "program":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"metadata":{"name":"other"}}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	p := newProxy(t, faults.Options{Target: &kube.Config{Host: server.URL}, Namespace: "run"})
	program := newProgram(t, p, "program")
	const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	for _, c := range []struct {
		method, path string
		code         int
		isClustered  bool
	}{
		{http.MethodPost, "/api/v1/nodes", http.StatusCreated, true},
		{http.MethodPatch, roles + "/role?fieldManager=program", http.StatusCreated, true},
		{http.MethodPut, "/api/v1/nodes/existing", http.StatusOK, true},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", http.StatusCreated, false},
		{http.MethodPost, maps, http.StatusCreated, false},
		{http.MethodDelete, "/api/v1/namespaces/other", http.StatusForbidden, false},
		{http.MethodPost, "/api/v1/namespaces", http.StatusCreated, true},
		{http.MethodPut, "/api/v1/namespaces/other", http.StatusOK, true},
		{http.MethodPut, "/api/v1/namespaces/run", http.StatusOK, true},
		{http.MethodPost, "/api/v1/namespaces/kube-system/pods/p/exec", http.StatusForbidden, false},
	} {
		code, body := program.send(c.method, c.path, `{}`)
		all := p.Requests()
		last := all[len(all)-1]
		isRefused := c.code == http.StatusForbidden
		if code != c.code || last.IsOutOfBounds != isRefused || !isRefused && last.IsClusterScoped != c.isClustered {
			t.Errorf("%s %s is answered with %d %s, and recorded as %+v", c.method, c.path, code, body, last)
		}
	}
	mu.Lock()
	received = nil
	mu.Unlock()
	if err := p.RemoveCreated(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"DELETE /api/v1/namespaces/other", "PATCH /api/v1/namespaces/other",
		"DELETE " + roles + "/role", "PATCH " + roles + "/role",
		"DELETE /api/v1/nodes/node-x2x9k", "PATCH /api/v1/nodes/node-x2x9k",
	}
	if !slices.Equal(received, want) {
		t.Errorf("the server received %q, want %q", received, want)
	}
}

// TestNoImpersonationBesideAnAccount checks that a program with the rights of an account does not get the
// rights of other users by asking for these rights.
func TestNoImpersonationBesideAnAccount(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var users []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		users = append(users, r.Header.Get("Impersonate-User"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(server.Close)
	account := &kube.Config{Host: server.URL, Impersonate: kube.Impersonation{UserName: "system:serviceaccount:a:b"}}
	p := newProxy(t, faults.Options{Target: account, Admin: &kube.Config{Host: server.URL}, Namespace: "run"})
	program := newProgram(t, p, "program")
	if code, body := program.send(http.MethodGet, maps, ""); code != http.StatusOK {
		t.Errorf("the account is answered with %d %s", code, body)
	}
	config := program.session.Config()
	config.Impersonate.UserName = "admin"
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		t.Fatal(err)
	}
	program.transport = transport
	if code, _ := program.send(http.MethodGet, maps, ""); code != http.StatusForbidden {
		t.Errorf("the impersonation of another user is answered with %d", code)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"system:serviceaccount:a:b"}; !slices.Equal(users, want) {
		t.Errorf("the server received requests of %q, want %q", users, want)
	}
}
