package retention

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
)

const finalizer = "example.com/cleanup"

var apps = wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "App"}, Plural: "apps"}

// site is a keeper of the program one in the namespace ops, which watches shop.
type site struct {
	*fakeserver.Server
	keeper *Keeper
	log    bytes.Buffer
	stop   func()
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Server: fakeserver.New()}
	s.Before(func(_ context.Context, r *wire.Request) error {
		if r.Verb == wire.VerbCreate {
			return fakeserver.Refusal(r, http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		return nil
	})
	s.keeper = New(Config{
		Client: s.Client(), Log: slog.New(slog.NewTextHandler(&s.log, nil)), Namespaces: []string{"shop"}, Reconciled: []wire.Resource{apps}, Finalizers: []string{finalizer}, Command: "one",
	})
	s.keeper.installation = &manifests.Installation{Name: "one", Namespace: "ops"}
	for _, r := range resources() {
		s.Store(r, "shop", "one.ops", map[string]any{})
	}
	return s
}

// run runs the keeper until stop, or the end of t.
func (s *site) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.keeper.Run(ctx) })
	s.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(s.stop)
}

// put stores an app with these finalizers.
func (s *site) put(name string, finalizers ...any) {
	s.Store(apps, "shop", name, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
}

// retained returns the plurals of the objects of the program that have the finalizer.
func (s *site) retained() (plurals []string) {
	for _, r := range resources() {
		o := s.Object(r.Plural, "shop", "one.ops")
		if o == nil {
			continue
		}
		finalizers, _ := o["metadata"].(map[string]any)["finalizers"].([]any)
		if slices.Contains(finalizers, any(manifests.RoleFinalizer)) {
			plurals = append(plurals, r.Plural)
		}
	}
	return plurals
}

// check fails t unless the Role and the RoleBinding have the finalizer, or neither has it.
func (s *site) check(t *testing.T, when string, want bool) {
	t.Helper()
	synctest.Wait()
	if got := s.retained(); len(got) != map[bool]int{true: 2}[want] {
		t.Errorf("%s: %v have the finalizer, log:\n%s", when, got, s.log.String())
	}
}

// The Role has the finalizer before an object gets one, and until the last object has lost it. While a reconcile may be adding a
// finalizer, the Role keeps its own. A program at rest makes no request.
func TestRoleIsRetained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.run(t)
		s.check(t, "at the start", false)
		written, err := s.keeper.Retain(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		s.check(t, "before the finalizer of an object is written", true)
		s.keeper.RecordRemoval("shop") // of another object
		time.Sleep(time.Minute)
		s.check(t, "while the finalizer is being written", true)
		s.put("web", finalizer)
		s.put("other", "other.example.com/keep")
		written()
		time.Sleep(time.Hour)
		s.check(t, "while an object has the finalizer", true)
		before := len(s.Requests())
		time.Sleep(time.Hour)
		for _, e := range s.Requests()[before:] {
			if e.Request.Verb != wire.VerbWatch {
				t.Errorf("at rest: %s %s", e.Request.Verb, e.Request.Ref())
			}
		}
		s.put("web")
		s.keeper.RecordRemoval("shop")
		time.Sleep(10 * time.Second)
		s.check(t, "after the last removal", false)
		if written, err = s.keeper.Retain(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		written()
		s.check(t, "for the next object", true)
	})
}

// A keeper that begins finds what the one before it has left: a finalizer that no object needs, and an object whose Role has
// lost the finalizer by hand. What ends within a second after a removal is done at the end of the program.
func TestNextLeaderSettlesRoles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		if written, err := s.keeper.Retain(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		} else {
			written()
		}
		s.run(t)
		time.Sleep(time.Minute)
		s.check(t, "without objects", false)
		s.put("web", finalizer)
		for _, r := range resources() {
			s.Store(r, "shop", "one.ops", map[string]any{"metadata": map[string]any{"labels": map[string]any{"by": "hand"}}})
		}
		time.Sleep(time.Minute)
		s.check(t, "after somebody has removed the finalizer", true)
		s.put("web")
		s.keeper.RecordRemoval("shop")
		s.stop()
		s.check(t, "after the end of the program", false)
	})
}

// The Role is deleted while an object lives. The log says so once, with what to do. It says nothing while a namespace is being deleted.
func TestRoleIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		isNamespaceEnding bool
		want              []string
	}{
		"the namespace ends":  {true, nil},
		"the namespace lives": {false, []string{"object=\"apps.example.com shop/web\"", "apply the manifests again", "kubectl patch roles.rbac.authorization.k8s.io --namespace shop one.ops", "kubectl patch rolebindings"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.run(t)
				s.put("web", finalizer)
				if written, err := s.keeper.Retain(t.Context(), "shop"); err != nil {
					t.Fatal(err)
				} else {
					written()
				}
				all := resources()
				for _, r := range append(slices.Clone(all[:]), apps) {
					if r == apps && !test.isNamespaceEnding {
						continue
					}
					name := map[bool]string{true: "web", false: "one.ops"}[r == apps]
					if _, err := s.Client().Do(t.Context(), &wire.Request{Verb: wire.VerbDelete, Resource: r, Namespace: "shop", Name: name}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Hour)
				s.check(t, "while the object exists", true)
				text := s.log.String()
				if strings.Count(text, "level=WARN") != min(len(test.want), 1) {
					t.Errorf("the log is %q", text)
				}
				for _, want := range test.want {
					if !strings.Contains(text, want) {
						t.Errorf("the log lacks %q: %s", want, text)
					}
				}
				s.put("web")
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				for _, r := range resources() {
					if s.Object(r.Plural, "shop", "one.ops") != nil {
						t.Errorf("%s is still there", r)
					}
				}
			})
		})
	}
}

// A program without a Role, or without the permission, works as before. The log says so once.
func TestNothingToRetain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*site)
		want   string
	}{
		"no role":       {func(s *site) { s.Remove("roles", "shop", "one.ops", nil) }, ""},
		"no account":    {func(s *site) { s.keeper.installation = nil }, ""},
		"an old Role":   {func(s *site) { s.refuse(http.StatusForbidden, metav1.StatusReasonForbidden) }, "apply the manifests again"},
		"own namespace": {func(s *site) { s.keeper.installation.Namespace = "shop" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				test.change(s)
				for range 3 {
					written, err := s.keeper.Retain(t.Context(), "shop")
					if err != nil {
						t.Fatal(err)
					}
					written()
				}
				if text := s.log.String(); strings.Count(text, "level=WARN") != min(len(test.want), 1) || !strings.Contains(text, test.want) {
					t.Errorf("the log is %q", text)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		if _, err := s.keeper.Retain(t.Context(), "shop"); err == nil {
			t.Error("a finalizer would be added although the Role may have none")
		}
	})
}

// refuse refuses each patch.
func (s *site) refuse(code int, reason metav1.StatusReason) {
	s.Before(func(_ context.Context, r *wire.Request) error {
		if r.Verb == wire.VerbPatch || r.Verb == wire.VerbCreate {
			return fakeserver.Refusal(r, code, reason)
		}
		return nil
	})
}

// The namespaces to retain are those in which a part with finalizers has a Role.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	nodes := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes", ClusterScoped: true}
	on := func(r wire.Resource, namespaces ...string) kube.Needs {
		return kube.Needs{Finalizers: []string{finalizer}, Reconciles: []wire.Resource{r}, Access: []kube.Access{{Resource: r, Namespaces: namespaces}}}
	}
	plain := on(apps)
	plain.Finalizers = nil
	for name, test := range map[string]struct {
		needs   kube.Needs
		watched []string
		want    []string
	}{
		"all namespaces":        {on(apps), nil, nil},
		"watched, and the own":  {on(apps), []string{"shop", "ops", "lab"}, []string{"lab", "shop"}},
		"of the controller":     {on(apps, "registry"), nil, []string{"registry"}},
		"without finalizers":    {plain, []string{"shop"}, nil},
		"outside of namespaces": {on(nodes), []string{"shop"}, nil},
	} {
		if got := Namespaces([]kube.Needs{test.needs}, test.watched, "ops"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, not %v", name, got, test.want)
		}
	}
}
