package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

// undecodable returns a thing whose spec does not fit its Go type.
func undecodable(name string, version int) string {
	return strings.Replace(object(name, version), `"size":`, `"size":"?","was":`, 1)
}

// eventText returns an event in short: a sign for its type, the namespace unless that is default,
// name, version, and size.
func eventText(e watch.Event[thing], err error) string {
	id := func(t *thing) string {
		text := t.Name + t.ResourceVersion
		if t.Namespace != "default" {
			text = t.Namespace + "/" + text
		}
		return fmt.Sprintf("%s(%d)", text, t.Spec.Size)
	}
	switch e := e.(type) {
	case watch.Added[thing]:
		return "+" + id(e.Object)
	case watch.Modified[thing]:
		return "~" + id(e.Object)
	case watch.Deleted[thing]:
		if e.Stale {
			return "-" + id(e.Object) + "?"
		}
		return "-" + id(e.Object)
	case watch.Synced[thing]:
		return "="
	}
	if bad, ok := errors.AsType[*wire.DecodeError](err); ok {
		return "!" + bad.Ref.Name + bad.ResourceVersion
	}
	return "!"
}

// events returns the first n events of a watch of the script.
func events(ctx context.Context, s *script, n int) (published []string) {
	for e, err := range watch.Events(ctx, kube.Everywhere[thing](kube.NewClientFromHandler(s))) {
		if published = append(published, eventText(e, err)); len(published) >= n {
			break
		}
	}
	return published
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		answers   []answer
		published string
	}{
		{
			name: "added, modified, deleted, and synced once",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), modified(object("a", 6)), deleted(object("a", 7)), gone()),
				stream(added(object("b", 8)), endOfList("9"), modified(object("b", 10))),
			},
			published: "+a1(1) = ~a6(6) -a7(7) +b8(8) ~b10(10)",
		},
		{
			name: "promise 3: an object that is missing after the gap is deleted, and only its metadata is known",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), gone()),
				stream(endOfList("9"), added(object("b", 10))),
			},
			published: "+a1(1) = -a1(0)? +b10(10)",
		},
		{
			name: "promise 4: an object that cannot be decoded is reported each time, the other objects are served",
			answers: []answer{stream(
				added(object("a", 1)), added(undecodable("b", 2)), added(object("c", 3)), endOfList("5"),
				modified(undecodable("b", 6)), modified(object("a", 7)),
			)},
			published: "+a1(1) !b2 +c3(3) = !b6 ~a7(7)",
		},
		{
			name: "promise 4: in pages",
			answers: []answer{
				refuse(422, "Invalid"),
				page("5", "", object("a", 1), undecodable("b", 2), object("c", 3)),
				stream(modified(object("b", 6))),
			},
			published: "+a1(1) !b2 +c3(3) = +b6(6)",
		},
		{
			name: "promise 4: never seen so far, it is added once it can be decoded",
			answers: []answer{stream(
				added(undecodable("a", 1)), endOfList("5"), modified(undecodable("a", 6)), modified(object("a", 7)), modified(object("a", 8)),
			)},
			published: "!a1 = !a6 +a7(7) ~a8(8)",
		},
		{
			name: "promise 4: never seen, its end is none",
			answers: []answer{stream(
				added(undecodable("a", 1)), endOfList("5"), deleted(undecodable("a", 6)), added(object("a", 7)), modified(object("a", 8)),
			)},
			published: "!a1 = +a7(7) ~a8(8)",
		},
		{
			name: "promise 4: never seen, and missing after a relist",
			answers: []answer{
				stream(added(undecodable("a", 1)), endOfList("5"), gone()),
				stream(endOfList("9"), added(object("a/other", 10))),
			},
			published: "!a1 = +a10(10)",
		},
		{
			name: "promise 4: a version that does not fit leaves the object to be known",
			answers: []answer{stream(
				added(object("a", 1)), endOfList("5"), modified(undecodable("a", 6)), modified(object("a", 7)),
			)},
			published: "+a1(1) = !a6 ~a7(7)",
		},
		{
			name: "promise 4: deleted in a form that does not fit, only its metadata is known",
			answers: []answer{stream(
				added(object("a", 1)), endOfList("5"), deleted(undecodable("a", 6)), added(object("b", 7)),
			)},
			published: "+a1(1) = -a6(0)? +b7(7)",
		},
		{
			name: "promise 4: one that cannot be decoded takes the name of another",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), gone()),
				stream(added(undecodable("a/other", 8)), endOfList("9"), modified(object("a/other", 10))),
			},
			published: "+a1(1) = -a1(0)? !a8 +a10(10)",
		},
		{
			name:      "promise 4: metadata that cannot be read",
			answers:   []answer{stream(added(`{"metadata":{"name":"a","resourceVersion":7}}`), added(object("b", 2)), endOfList("5"))},
			published: "! +b2(2) =",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				want := strings.Fields(c.published)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := events(ctx, &script{t: t, answers: c.answers}, len(want))
				// A decode error without a name is published as one.
				for i := range got {
					if strings.HasPrefix(want[i], "!") && len(want[i]) == 1 && strings.HasPrefix(got[i], "!") {
						got[i] = "!"
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("published (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A stale deletion has what is needed to find the object again: identity and kind.
func TestStaleDeletionHasItsIdentity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			stream(added(object("a/u1", 1)), endOfList("5"), gone()),
			stream(endOfList("9")),
		}}
		for e := range watch.Events(t.Context(), kube.Everywhere[thing](kube.NewClientFromHandler(s))) {
			d, ok := e.(watch.Deleted[thing])
			if !ok {
				continue
			}
			o := d.Object
			got := []string{o.APIVersion, o.Kind, o.Namespace, o.Name, string(o.UID), o.ResourceVersion}
			want := []string{"example.com/v1", "Thing", "default", "a", "u1", "1"}
			if diff := cmp.Diff(want, got); diff != "" || !d.Stale {
				t.Errorf("stale: %t (-want +got):\n%s", d.Stale, diff)
			}
			break
		}
	})
}

// Several namespaces are one sequence, which is synced when all of them are.
func TestNamespacesAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := func(namespace, object string) string {
			return strings.Replace(object, `"namespace":"default"`, `"namespace":"`+namespace+`"`, 1)
		}
		var s wire.HandlerFunc = func(_ context.Context, r *wire.Request) (*wire.Response, error) {
			switch r.Namespace {
			case "one":
				return stream(added(in("one", object("a", 1))), endOfList("5"), pause(time.Minute), deleted(in("one", object("a", 9))), hang())(r)
			case "two":
				return stream(pause(10*time.Second), added(in("two", object("a", 2))), endOfList("5"), hang())(r)
			}
			t.Errorf("a request in the namespace %q", r.Namespace)
			return nil, errors.New("not expected")
		}
		client := kube.NewClientFromHandler(s).InNamespaces("one", "two")
		var published []string
		for e, err := range watch.Events(t.Context(), kube.Everywhere[thing](client)) {
			if published = append(published, eventText(e, err)); len(published) == 4 {
				break
			}
		}
		if diff := cmp.Diff([]string{"+one/a1(1)", "+two/a2(2)", "=", "-one/a9(9)"}, published); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// A client or a selector that is wrong leads to one error and the end, without any request.
func TestErrorOfTheQuestionIsTheEnd(t *testing.T) {
	t.Parallel()
	s := &script{t: t}
	client := kube.NewClientFromHandler(s)
	clusterWide := wire.Resource{GroupVersionKind: things.Resource.GroupVersionKind, Plural: "things", ClusterScoped: true}
	for name, sequence := range map[string]func(func(error)){
		"a bad label selector":                 errorsOf(watch.Events(t.Context(), kube.Everywhere[thing](client), kube.ParseLabels("a in"))),
		"a bad field selector":                 errorsOf(watch.Events(t.Context(), kube.Everywhere[thing](client), kube.ParseFields("nothing"))),
		"a bad namespace":                      errorsOf(watch.Events(t.Context(), kube.Namespaced[thing](client, "../x"))),
		"no namespace":                         errorsOf(watch.Events(t.Context(), kube.Namespaced[thing](client, ""))),
		"a cluster-scoped kind in a namespace": errorsOf(watch.Events(t.Context(), kube.Dynamic(client, clusterWide, "default"))),
		"a resource without a plural":          errorsOf(watch.Events(t.Context(), kube.Metadata(client, wire.Resource{}, ""))),
	} {
		t.Run(name, func(t *testing.T) {
			var errs []error
			sequence(func(err error) { errs = append(errs, err) })
			if len(errs) != 1 || errs[0] == nil {
				t.Errorf("published: %v", errs)
			}
		})
	}
	if asked := s.requests(); len(asked) > 0 {
		t.Errorf("asked: %v", asked)
	}
}

// errorsOf returns the errors of a sequence of events, one for each event, nil if it has none.
func errorsOf[T any](sequence func(func(watch.Event[T], error) bool)) func(func(error)) {
	return func(yield func(error)) {
		sequence(func(e watch.Event[T], err error) bool {
			if e != nil {
				err = nil
			}
			yield(err)
			return true
		})
	}
}

// Objects without a Go type of their own, and metadata alone.
func TestEventsOfOtherForms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{stream(added(object("a", 3)), endOfList("5"))}}
		for e := range watch.Events(t.Context(), kube.Dynamic(kube.NewClientFromHandler(s), things.Resource, "default")) {
			o := e.(watch.Added[unstructured.Unstructured]).Object
			if size, _, err := unstructured.NestedInt64(o.Object, "spec", "size"); size != 3 || err != nil || o.GetKind() != "Thing" {
				t.Errorf("got %v, %v", o.Object, err)
			}
			break
		}
		partial := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"default","name":"a","uid":"a","resourceVersion":"3","labels":{"x":"y"}}}`
		s = &script{t: t, answers: []answer{stream(added(partial), endOfList("5"))}}
		for e := range watch.Events(t.Context(), kube.Metadata(kube.NewClientFromHandler(s), things.Resource, "default")) {
			o := e.(watch.Added[metav1.PartialObjectMetadata]).Object
			if o.Name != "a" || o.Labels["x"] != "y" || o.Kind != "Thing" {
				t.Errorf("got %v", o)
			}
			break
		}
	})
}

// Leaving the loop, and the end of the context, end all goroutines: synctest fails a test
// that leaves one.
func TestEventsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, namespaces := range [][]string{nil, {"one"}, {"one", "two", "three"}} {
		for name, end := range map[string]func(context.CancelFunc) bool{
			"the loop is left": func(context.CancelFunc) bool { return false },
			"the context ends": func(cancel context.CancelFunc) bool { cancel(); return true },
		} {
			t.Run(fmt.Sprintf("%s, %d namespaces", name, len(namespaces)), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					h := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
						return stream(added(object("a", 1)), added(object("b", 2)), endOfList("5"), added(object("c", 6)), hang())(r)
					})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					n := 0
					for range watch.Events(ctx, kube.Everywhere[thing](kube.NewClientFromHandler(h).InNamespaces(namespaces...))) {
						if n++; n >= 2 && !end(cancel) {
							break
						}
					}
				})
			})
		}
	}
}
