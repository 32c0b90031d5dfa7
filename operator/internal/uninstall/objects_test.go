package uninstall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// The namespaces that a program watches are found in its arguments, however they are written.
func TestWatchedNamespacesOfADeployment(t *testing.T) {
	t.Parallel()
	var d clusterread.Object
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, struct {
		Args []string `json:"args"`
	}{[]string{"run", "--watch-namespace=b", "-watch-namespace", "a", "--watch-namespace=b", "--bucket=watch-namespace=c", "-v"}})
	if got := flagValues(&d, "watch-namespace"); len(got) != 2 || got[0] != "b" || got[1] != "a" {
		t.Errorf("the namespaces are %q", got)
	}
}

// The command waits for the cleanup of an object, for as long as it may run. It removes a finalizer
// only if the user abandons the cleanup, and never a finalizer of others.
func TestFinalizersAreRemovedOnRequestOnly(t *testing.T) {
	t.Parallel()
	const own, foreign = "robots.example.com/cleanup", "other.example.com/keep"
	for _, test := range []struct {
		isAbandoned bool
		want        []string
	}{
		{false, []string{own, foreign}},
		{true, []string{foreign}},
	} {
		t.Run(fmt.Sprint("abandoned: ", test.isAbandoned), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				robots := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Robot"}, Plural: "robots"}
				server.Store(robots, "default", "a", map[string]any{"metadata": map[string]any{"finalizers": []any{own, foreign}}})
				var out bytes.Buffer
				c := &cluster{client: server.Client(), out: &out, limit: time.Hour}
				f := &findings{Options: &Options{
					Installation: manifests.Installation{Program: "robots", Name: "robots", Namespace: "robots"},
					Kinds:        []wire.Resource{robots}, Finalizers: []string{own}, DeleteObjects: true, AbandonCleanup: test.isAbandoned, Out: &out,
				}, watched: []string{"default"}, ownKinds: []wire.Resource{robots}}
				ctx, cancel := context.WithTimeout(t.Context(), readyLimit/2)
				defer cancel()
				var err error
				if f.objects, err = c.listKinds(ctx, f.ownKinds, f.watched, nil); err != nil || len(f.objects) != 1 {
					t.Fatalf("the objects are %v, %v", f.objects, err)
				}
				if err := removeObjects(ctx, c, f); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the error is %v", err)
				}
				o, exists, err := clusterread.Find(t.Context(), c.client, robots, "default", "a")
				if !exists {
					t.Fatalf("the object does not exist: %v\n%s", err, &out)
				}
				if o.Metadata.DeletionTimestamp == nil || fmt.Sprint(o.Metadata.Finalizers) != fmt.Sprint(test.want) {
					t.Errorf("the object is being deleted since %v, with the finalizers %q, want %q\n%s",
						o.Metadata.DeletionTimestamp, o.Metadata.Finalizers, test.want, &out)
				}
			})
		})
	}
}

// A group that did not answer the discovery of all groups may answer when it is asked alone. Then its kinds are served. They were
// left out, and with them the objects that wait for a finalizer.
func TestKindOfAGroupThatAnswersLater(t *testing.T) {
	t.Parallel()
	_, robots := newRobots()
	client := kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: http.StatusOK, Body: []byte(`{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"robots","kind":"Robot","namespaced":true}]}`)}, nil
	}))
	c := &cluster{client: client, discoveryErr: errors.New("example.com did not answer")}
	if got, err := c.servedKinds(t.Context(), []wire.Resource{robots, robots}); err != nil || len(got) != 1 || got[0] != robots {
		t.Errorf("the server serves %v: %v", got, err)
	}
}

// newRobots returns a server, and the resource of robots.
func newRobots() (*fakeserver.Server, wire.Resource) {
	return fakeserver.New(), wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Robot"}, Plural: "robots"}
}

// The wait for the end of an object has an end, and the error names the finalizers that are left.
func TestWaitForTheEndOfAnObjectEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, robots := newRobots()
		server.Store(robots, "default", "a", map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/held"}}})
		c := &cluster{client: server.Client(), out: new(bytes.Buffer), limit: time.Minute}
		o, exists, err := clusterread.Find(t.Context(), c.client, robots, "default", "a")
		if !exists {
			t.Fatal(err)
		}
		began := time.Now()
		err = c.remove(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "example.com/held") || !strings.Contains(err.Error(), "--timeout") || time.Since(began) > 2*time.Minute {
			t.Errorf("after %s the error is %v", time.Since(began), err)
		}
	})
}

// The wait for cleanups ends when none of them has ended for the timeout, although the program is ready.
func TestWaitForCleanupsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, robots := newRobots()
		server.Store(robots, "default", "a", map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/cleanup"}}})
		server.Store(clusterread.Deployments(), "robots", "robots", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{manifests.LabelName: "robots", manifests.LabelManagedBy: manifests.ManagedBy}},
			"status":   map[string]any{"readyReplicas": 1},
		})
		c := &cluster{client: server.Client(), out: new(bytes.Buffer), limit: 10 * time.Minute}
		f := &findings{Options: &Options{
			Installation: manifests.Installation{Program: "robots", Name: "robots", Namespace: "robots"},
			Finalizers:   []string{"example.com/cleanup"}, DeleteObjects: true,
		}, ownKinds: []wire.Resource{robots}}
		var err error
		if f.objects, err = c.listKinds(t.Context(), f.ownKinds, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := removeObjects(t.Context(), c, f); err == nil || !strings.Contains(err.Error(), "no cleanup has ended for 10m0s") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A kind that may not be listed is an error, and not a kind without objects. A kind that the server does not serve has
// no objects.
func TestKindsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code       int
		discovered string
		isError    bool
	}{
		"may not be listed":                 {http.StatusForbidden, `[{"name":"robots","kind":"Robot","namespaced":true}]`, true},
		"cannot be found, and is served":    {http.StatusNotFound, `[{"name":"robots","kind":"Robot","namespaced":true}]`, true},
		"cannot be found, nor is it served": {http.StatusNotFound, `[]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, robots := newRobots()
				c := &cluster{out: new(bytes.Buffer), client: kube.NewClientFromHandler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					if r.Verb == wire.VerbGet && r.Resource.Plural == "" {
						return &wire.Response{Body: []byte(`{"kind":"APIResourceList","resources":` + test.discovered + `}`)}, nil
					}
					if r.Verb == wire.VerbList {
						return nil, fakeserver.Refusal(r, test.code, "")
					}
					return server.Do(ctx, r)
				}))}
				if _, err := c.listKinds(t.Context(), []wire.Resource{robots}, nil, nil); (err != nil) != test.isError {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// A Lease that somebody else renews stays, whatever the clock of the holder shows: without the Lease, two processes would lead.
// Electors of other languages write local time as UTC. A Lease that was released, or whose holder has ended, goes.
func TestLeaseThatIsRenewedStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		holder           string
		behind, renewing time.Duration
		stays            bool
	}{
		"renewed":                {"somebody", 0, 10 * time.Second, true},
		"renewed by New York":    {"somebody", 5 * time.Hour, 10 * time.Second, true},
		"renewed by Tokyo":       {"somebody", -9 * time.Hour, 10 * time.Second, true},
		"the holder has ended":   {"somebody", 0, 0, false},
		"ended, the clock ahead": {"somebody", -time.Hour, 0, false},
		"released":               {"", 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				renew := func() {
					server.Store(lease.Resource(), "elsewhere", "shared", map[string]any{"spec": map[string]any{
						"holderIdentity": test.holder, "leaseDurationSeconds": 15, "renewTime": time.Now().UTC().Add(-test.behind).Format("2006-01-02T15:04:05.000000Z"),
					}})
				}
				renew()
				if test.renewing > 0 {
					defer time.AfterFunc(test.renewing, renew).Stop()
				}
				d := &clusterread.Object{}
				d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, struct {
					Args []string `json:"args"`
				}{[]string{"run", "--lease-name=shared", "--lease-namespace=elsewhere"}})
				var out bytes.Buffer
				c := &cluster{client: server.Client(), out: &out, limit: time.Minute}
				if err := removeLease(t.Context(), c, &findings{Options: &Options{Installation: manifests.Installation{Program: "robots", Namespace: "robots"}}, deployment: d}); err != nil {
					t.Error(err)
				}
				if isLeft := server.Object("leases", "elsewhere", "shared") != nil; isLeft != test.stays || strings.Contains(out.String(), "kept") != test.stays {
					t.Errorf("the Lease is left: %t; %s", isLeft, &out)
				}
			})
		})
	}
}

// The finalizers of objects that another installation watches are no concern of this one.
func TestFinalizersOfWatchedNamespaces(t *testing.T) {
	t.Parallel()
	_, robots := newRobots()
	for name, test := range map[string]struct {
		others map[string]string // the argument of each other installation
		f      findings
		want   string
	}{
		"all namespaces":                {nil, findings{Options: &Options{}}, "a b c"},
		"another in one namespace":      {map[string]string{"one": "--watch-namespace=b"}, findings{Options: &Options{}}, "a c"},
		"another in all namespaces":     {map[string]string{"one": "--watch-namespace=b", "two": "run"}, findings{Options: &Options{}}, ""},
		"objects that the user deletes": {nil, findings{Options: &Options{DeleteObjects: true}, ownKinds: []wire.Resource{robots}, watched: []string{"c"}}, "a b"},
	} {
		server := fakeserver.New()
		for _, namespace := range []string{"a", "b", "c"} {
			server.Store(robots, namespace, "x", map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/cleanup"}}})
		}
		for deployment, arg := range test.others {
			server.Store(clusterread.Deployments(), deployment, deployment, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{manifests.LabelName: "robots", manifests.LabelManagedBy: manifests.ManagedBy}},
				"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"args": []any{arg}}}}}},
			})
		}
		c := &cluster{client: server.Client(), out: new(bytes.Buffer)}
		f := test.f
		f.Installation = manifests.Installation{Program: "robots", Name: "robots", Namespace: "robots"}
		f.reconciled, f.Finalizers = []wire.Resource{robots}, []string{"example.com/cleanup"}
		objects, err := objectsToRelease(t.Context(), c, &f)
		got := ""
		for _, x := range objects {
			got += " " + x.Metadata.Namespace
		}
		if strings.TrimSpace(got) != test.want || err != nil {
			t.Errorf("%s: %q, want %q; %v", name, got, test.want, err)
		}
	}
}

// Regression: a child of an object of the program, whose label app.kubernetes.io/name is the name of the program, passed for
// another installation. So the command removed the program although an object was left.
func TestChildIsNoInstallation(t *testing.T) {
	t.Parallel()
	server := fakeserver.New()
	for name, labels := range map[string]map[string]any{
		"child":   {manifests.LabelName: "robots", manifests.LabelInstance: "a", manifests.LabelManagedBy: "robots-operator"},
		"robots":  {manifests.LabelName: "robots", manifests.LabelManagedBy: manifests.ManagedBy, manifests.LabelNamespace: "robots"},
		"other":   {manifests.LabelName: "robots", manifests.LabelManagedBy: manifests.ManagedBy, manifests.LabelNamespace: "robots"},
		"by-helm": {manifests.LabelName: "robots", manifests.LabelManagedBy: "Helm", manifests.LabelNamespace: "robots"},
		"earlier": {manifests.LabelName: "robots", manifests.LabelManagedBy: manifests.ManagedBy},
	} {
		server.Store(clusterread.Deployments(), "robots", name, map[string]any{"metadata": map[string]any{"labels": labels}})
	}
	c := &cluster{client: server.Client(), out: new(bytes.Buffer)}
	others, err := otherDeployments(t.Context(), c, &manifests.Installation{Program: "robots", Name: "robots", Namespace: "robots"})
	var got []string
	for _, d := range others {
		got = append(got, d.Metadata.Name)
	}
	slices.Sort(got)
	if want := []string{"by-helm", "earlier", "other"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the other installations are %q, want %q; %v", got, want, err)
	}
}

// A binding with the labels of the installation that grants its role to the account of another installation is an
// error. Bindings for other accounts, such as that of Prometheus, are no concern.
func TestBindingsOfOtherInstallations(t *testing.T) {
	t.Parallel()
	bindings := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, Plural: "clusterrolebindings", ClusterScoped: true}
	i := manifests.Installation{Program: "robots", Name: "robots", Namespace: "one"}
	for name, test := range map[string]struct {
		subjects []any // name and namespace
		isError  bool
	}{
		"own":               {[]any{"robots", "one"}, false},
		"own and another":   {[]any{"robots", "two", "robots", "one"}, false},
		"another":           {[]any{"robots", "two"}, true},
		"reader of metrics": {[]any{"robots-metrics-reader", "one"}, false},
		"prometheus":        {[]any{"prometheus", "monitoring"}, false},
		"nobody":            {nil, false},
	} {
		server := fakeserver.New()
		var subjects []any
		for pair := range slices.Chunk(test.subjects, 2) {
			subjects = append(subjects, map[string]any{"name": pair[0], "namespace": pair[1]})
		}
		server.Store(bindings, "", "robots", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{manifests.LabelInstance: "robots", manifests.LabelNamespace: "one"}}, "subjects": subjects,
		})
		c := &cluster{client: server.Client(), resources: []wire.Resource{bindings}}
		if err := checkBindings(t.Context(), c, &i); (err != nil) != test.isError {
			t.Errorf("%s: %v", name, err)
		}
	}
}
