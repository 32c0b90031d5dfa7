package restoration

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

var (
	web = kube.Key{Namespace: "ns", Name: "web"}
	api = kube.Key{Namespace: "ns", Name: "api"}
)

// testStream is a stream of the example in doc.go.
type testStream struct {
	*Detector
	*Recorder
	relists, probes atomic.Int32
}

func (s *testStream) Relist() { s.relists.Add(1) }
func (s *testStream) Probe()  { s.probes.Add(1) }

// open opens a stream that is listed at version 100.
func open(r *Restorations, s wire.Stream) *testStream {
	t := &testStream{}
	t.Detector, t.Recorder = r.Open(s, t)
	t.list("100")
	return t
}

// openGroup opens a stream of a group in the home cluster.
func openGroup(r *Restorations, group string) *testStream {
	return open(r, streamOf(group))
}

func streamOf(group string) wire.Stream {
	return wire.Stream{Resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: group}}}
}

// list makes a list at version, and returns its result.
func (s *testStream) list(version string) ListResult {
	s.BeginList()
	return s.endList(version)
}

// endList ends the current list.
func (s *testStream) endList(version string) ListResult {
	result := s.RecordList(version)
	s.EndList(version, result)
	return result
}

// check compares the requests of the stream with what is wanted, and whether its store is in doubt.
func (s *testStream) check(t *testing.T, name string, relists, probes int32, isDoubted bool) {
	t.Helper()
	if s.relists.Load() != relists || s.probes.Load() != probes || s.IsDoubted() != isDoubted {
		t.Errorf("%s: %d lists and %d probes were asked for, want %d and %d; in doubt: %t, want %t",
			name, s.relists.Load(), s.probes.Load(), relists, probes, s.IsDoubted(), isDoubted)
	}
}

// newRestorations returns Restorations, and counts the groups whose answers are in doubt.
func newRestorations(doubted map[string]int) *Restorations {
	return New(func(_ string, isAffected func(string) bool) {
		for group := range doubted {
			if isAffected(group) {
				doubted[group]++
			}
		}
	})
}

// The example in doc.go: each of the observations leads to a fresh list, and puts all stores in doubt whose versions the
// same server assigns, until they are listed too. Their lists begin within a minute.
func TestExample(t *testing.T) {
	t.Parallel()
	for name, observe := range map[string]func(*testing.T, *testStream){
		"the watch passes the expected version": func(t *testing.T, s *testStream) {
			if err := s.Advance("121", web); err == nil {
				t.Error("no error is returned")
			}
		},
		"an answer is older than the object in the store": func(t *testing.T, s *testStream) {
			if s.CheckAnswer(ShownState{Object: ident.NewVersion("u", "110"), ReachedVersion: "110"}, ident.NewVersion("u", "103"), web, "") == nil {
				t.Error("no error is returned")
			}
		},
		"an answer should be in the store": func(t *testing.T, s *testStream) {
			if s.CheckAnswer(ShownState{ReachedVersion: "110"}, ident.NewVersion("u", "103"), web, "") == nil {
				t.Error("no error is returned")
			}
		},
		"a probe has found a loss": func(_ *testing.T, s *testStream) { s.RecordLoss() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				doubted := map[string]int{"apps": 0, "example.com": 0, "foreign.example.org": 0}
				all := newRestorations(doubted)
				all.RecordDefinition("example.com")
				deployments, pods := openGroup(all, "apps"), openGroup(all, "")
				defined, foreign := openGroup(all, "example.com"), openGroup(all, "foreign.example.org")
				elsewhere := open(all, wire.Stream{Cluster: "other"})
				if err := deployments.Advance("110", web); err != nil {
					t.Fatal(err)
				}
				if err := pods.Advance("115", api); err != nil {
					t.Fatal(err)
				}
				deployments.Expect(api, "120", "")
				observe(t, deployments)
				deployments.check(t, "deployments", 1, 0, true)
				pods.check(t, "pods", 0, 0, true)
				defined.check(t, "the kind of the program", 0, 0, true)
				time.Sleep(time.Minute)
				synctest.Wait()
				pods.check(t, "pods, a minute later", 1, 0, true)
				defined.check(t, "the kind of the program, a minute later", 1, 0, true)
				foreign.check(t, "the foreign kind", 0, 1, false)
				elsewhere.check(t, "the other cluster", 0, 0, false)
				for name, s := range map[string]*testStream{"deployments": deployments, "pods": pods, "the kind of the program": defined} {
					if result := s.list("107"); !result.IsDoubtSettled || result.Err != nil {
						t.Errorf("%s: the list has the result %+v", name, result)
					}
					s.check(t, name+", listed", 1, 0, false)
				}
				if doubted["apps"] != 1 || doubted["example.com"] != 1 || doubted["foreign.example.org"] != 0 {
					t.Errorf("the answers in doubt: %v, want those of one restoration", doubted)
				}
			})
		})
	}
}

// A watch does not reach the expected version within a minute. The stream is listed, and only the list can prove a
// restoration: a watch that lags is silent too.
func TestOverdueVersionIsNoProof(t *testing.T) {
	t.Parallel()
	for version, isProof := range map[string]bool{"107": true, "125": false} {
		synctest.Test(t, func(t *testing.T) {
			all := newRestorations(nil)
			s, other := openGroup(all, ""), openGroup(all, "")
			_ = s.Advance("110", web)
			s.Expect(api, "120", "")
			time.Sleep(time.Second)
			s.RecordWatchOpened()
			time.Sleep(59 * time.Second)
			if err := s.CheckOverdue(); err != nil {
				t.Errorf("too early: %v", err)
			}
			time.Sleep(2 * time.Second)
			if s.CheckOverdue() == nil {
				t.Error("no error is returned")
			}
			s.check(t, "the stream", 1, 0, true)
			other.check(t, "the other stream", 0, 0, false)
			if result := s.list(version); !result.IsDoubtSettled || result.IsRestoration != isProof || other.IsDoubted() != isProof {
				t.Errorf("the list at version %s has the result %+v; the other store is in doubt: %t", version, result, other.IsDoubted())
			}
		})
	}
}

// A kind that the server does not serve is not listed before it is served. Its store is not in doubt, whenever the
// restoration is found.
func TestAbsentKindIsNotInDoubt(t *testing.T) {
	t.Parallel()
	all := newRestorations(nil)
	found, unserved, late := openGroup(all, ""), openGroup(all, ""), openGroup(all, "")
	unserved.BeginList()
	unserved.EndList("100", unserved.RecordUnserved())
	late.BeginList()
	found.list("60")
	result := late.RecordUnserved()
	late.EndList("100", result)
	if unserved.IsDoubted() || late.IsDoubted() || !result.IsDoubtSettled {
		t.Errorf("in doubt: %t and %t, settled: %t", unserved.IsDoubted(), late.IsDoubted(), result.IsDoubtSettled)
	}
	unserved.BeginList()
	found.list("50")
	if !unserved.IsDoubted() {
		t.Error("a kind that is served again is not in doubt")
	}
}

// A proof in a foreign group concerns the streams of that group only: an aggregated API server may serve it. All other
// streams are probed.
func TestProofInAForeignGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRestorations(nil)
		metrics, nodes := openGroup(all, "metrics.k8s.io"), openGroup(all, "metrics.k8s.io")
		certificates, pods := openGroup(all, "cert-manager.io"), openGroup(all, "")
		if result := metrics.list("7"); !result.IsDoubtSettled || result.Err == nil {
			t.Errorf("the list has the result %+v", result)
		}
		metrics.check(t, "the stream of the proof", 0, 0, false)
		nodes.check(t, "the other stream of the group", 0, 0, true)
		time.Sleep(time.Minute)
		synctest.Wait()
		nodes.check(t, "the other stream of the group, a minute later", 1, 0, true)
		certificates.check(t, "another foreign group", 0, 1, false)
		pods.check(t, "a kind of Kubernetes", 0, 1, false)
		if !all.AreRestoredTogether(streamOf("metrics.k8s.io"), streamOf("metrics.k8s.io")) || all.AreRestoredTogether(streamOf("metrics.k8s.io"), streamOf("")) {
			t.Error("the restoration is published to other streams than those of the group")
		}
	})
}

// Every group of k8s.io/api is one of Kubernetes, and no aggregated group is.
func TestKubernetesGroups(t *testing.T) {
	t.Parallel()
	for kind := range scheme.Scheme.AllKnownTypes() {
		if !isKubernetesGroup(kind.Group) {
			t.Errorf("the group %s is foreign", kind.Group)
		}
	}
	for _, group := range []string{"metrics.k8s.io", "custom.metrics.k8s.io", "gateway.networking.k8s.io", "example.com"} {
		if isKubernetesGroup(group) {
			t.Errorf("the group %s is not foreign", group)
		}
	}
}

// Two streams prove the same restoration. Each stream is listed once.
func TestTwoProofsOfOneRestoration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRestorations(nil)
		a, b, c := openGroup(all, ""), openGroup(all, ""), openGroup(all, "apps")
		b.BeginList()
		if result := a.list("60"); result.Err == nil {
			t.Error("the first proof is not reported")
		}
		if result := b.endList("61"); !result.IsDoubtSettled || result.Err != nil { // it certainly has the state of the restored server
			t.Errorf("the second list has the result %+v", result)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		a.check(t, "a", 0, 0, false)
		b.check(t, "b", 0, 0, false)
		c.check(t, "c", 1, 0, true)
	})
}

// A server is restored twice, and the stream b is in doubt all the time. Regression: the list of b counted as a proof of the
// first restoration. So a, which was listed between the two, kept what the second one had undone.
func TestSecondRestorationWhileAStreamIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, observe := range map[string]func(b *testStream){
		"watch":  func(b *testStream) { _ = b.Advance("170", kube.Key{}) },
		"answer": func(b *testStream) { b.Expect(web, "170", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := newRestorations(nil)
			a, b := openGroup(all, ""), openGroup(all, "")
			if result := a.list("60"); result.Err == nil {
				t.Error("the first restoration is not reported")
			}
			observe(b)
			a.check(t, "a between the restorations", 0, 0, false)
			if result := b.list("151"); !result.IsDoubtSettled || result.Err == nil {
				t.Errorf("the list that shows the second restoration has the result %+v", result)
			}
			a.check(t, "a", 0, 0, true)
			b.check(t, "b", 0, 0, false)
			for _, s := range []*testStream{a, b} {
				all.Close(s.Detector)
			}
		})
	}
}

// A list that was under way when a restoration was found may have the former state. The store stays in doubt until the
// list that follows. Regression: the end of the first list declared the store right, if it fell between the check
// and the record of the other stream.
func TestListThatIsUnderWayEndsNoDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRestorations(nil)
		found, other := openGroup(all, ""), openGroup(all, "")
		other.BeginList()
		found.list("60")
		if result := other.endList("110"); result.IsDoubtSettled || !other.IsDoubted() {
			t.Errorf("the list has the result %+v, in doubt: %t", result, other.IsDoubted())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		other.check(t, "the other stream", 1, 0, true)
		if result := other.list("111"); !result.IsDoubtSettled || other.IsDoubted() {
			t.Errorf("the next list has the result %+v, in doubt: %t", result, other.IsDoubted())
		}
	})
}

// Regression: a list ended the first of two reasons for doubt, and the store counted as in doubt since the first one. Who
// waits for a store for five minutes did not wait for the second list.
func TestDoubtBeginsWithAReasonThatIsNotSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRestorations(nil)
		found, other := openGroup(all, ""), openGroup(all, "")
		found.list("60")
		time.Sleep(time.Minute)
		other.BeginList()
		time.Sleep(time.Minute)
		_ = found.Advance("170", web)
		found.list("150")
		second := time.Now()
		time.Sleep(time.Minute)
		other.endList("155")
		if since, isDoubted := other.DoubtedSince(); !isDoubted || !since.Equal(second) {
			t.Errorf("in doubt: %t, since %s, want since %s", isDoubted, since, second)
		}
	})
}

// Streams that end their lists at the same moment. Whatever the order, each store that was not listed after the proof
// is in doubt. Regression: the count of a store was checked and changed without a lock.
func TestProofsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	for range 300 {
		all := newRestorations(nil)
		streams := make([]*testStream, 8)
		for i := range streams {
			streams[i] = openGroup(all, "")
			if i%2 == 0 {
				_ = streams[i].Advance("200", web)
			}
			streams[i].BeginList()
		}
		var running sync.WaitGroup
		for _, s := range streams {
			running.Go(func() { s.endList("150") })
		}
		running.Wait()
		for i, s := range streams {
			if isProof := i%2 == 0; s.IsDoubted() == isProof {
				t.Fatalf("stream %d, whose list is a proof: %t, is in doubt: %t", i, isProof, s.IsDoubted())
			}
			all.Close(s.Detector)
		}
	}
}

// A list that does not reach an expected version is a proof by itself, if it began after the answer.
func TestListLacksAnExpectedVersion(t *testing.T) {
	t.Parallel()
	for version, isProof := range map[string]bool{"120": false, "107": true} {
		s := openGroup(newRestorations(nil), "")
		s.Expect(api, "120", "")
		s.BeginList()
		s.Expect(web, "125", "") // the answer came within the list, which need not show it
		if result := s.endList(version); result.IsDoubtSettled != isProof || (result.Err != nil) != isProof {
			t.Errorf("a list at version %s has the result %+v", version, result)
		}
	}
}

// What the stream shows, or does not select, is no loss.
func TestNoLoss(t *testing.T) {
	t.Parallel()
	s := open(newRestorations(nil), wire.Stream{LabelSelector: "app=web"})
	s.Expect(web, "105", `{"app":"web"}`)
	s.Expect(api, "104", `{"app":"api"}`)
	s.Expect(web, "99", `{"app":"web"}`)
	if err := s.Advance("105", web); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		s.CheckAnswer(ShownState{Object: ident.NewVersion("u", "105"), ReachedVersion: "105"}, ident.NewVersion("u", "105"), web, `{"app":"web"}`),
		s.CheckAnswer(ShownState{Object: ident.NewVersion("u", "101"), ReachedVersion: "105"}, ident.NewVersion("v", "103"), api, `{"app":"api"}`),
		s.CheckAnswer(ShownState{ReachedVersion: "105"}, ident.NewVersion("v", "106"), web, `{"app":"web"}`),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if s.relists.Load() != 0 || s.IsDoubted() {
		t.Errorf("%d lists were asked for, in doubt: %t", s.relists.Load(), s.IsDoubted())
	}
}

// An answer is compared with the state before its request. If a list has replaced that state because of a restoration,
// the answer proves nothing more.
func TestAnswerToARequestFromBeforeTheList(t *testing.T) {
	t.Parallel()
	s := openGroup(newRestorations(nil), "")
	before := ShownState{ReachedVersion: "100", SettledCount: s.SettledCount()}
	s.list("60")
	if err := s.CheckAnswer(before, ident.NewVersion("u", "62"), web, ""); err != nil || s.IsDoubted() {
		t.Errorf("the answer is a contradiction: %v", err)
	}
}

// Regression: a server that contradicts itself all the time was listed every minute, without a log line, and all
// controllers reconciled everything. The intervals double up to an hour, each list is reported, and only the first
// contradiction is a proof. A lower version is a proof all the same.
func TestContradictionsAreRareAndReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRestorations(nil)
		s, other := openGroup(all, ""), openGroup(all, "")
		began := time.Now()
		var got []time.Duration
		listed := int32(0) // of the other stream
		contradict := func(until time.Duration) {
			for time.Since(began) < until {
				if err := s.CheckAnswer(ShownState{ReachedVersion: "100", SettledCount: s.SettledCount()}, ident.NewVersion("u", "90"), web, ""); err != nil {
					got = append(got, time.Since(began).Truncate(time.Minute))
				}
				if s.relists.Swap(0) > 0 {
					s.list("100")
				}
				if other.relists.Load() > listed {
					listed++
					other.list("100")
				}
				time.Sleep(time.Second)
			}
		}
		contradict(5 * time.Hour)
		var want []time.Duration
		for _, minutes := range []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 243} {
			want = append(want, time.Duration(minutes)*time.Minute)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the reports (-want +got):\n%s", diff)
		}
		other.check(t, "the other stream", 1, 0, false)

		if result := s.list("50"); !result.IsDoubtSettled || !other.IsDoubted() {
			t.Errorf("a list with a lower version has the result %+v", result)
		}
		other.list("51")

		// A day without a contradiction makes the next one the first.
		time.Sleep(25 * time.Hour)
		contradict(time.Since(began) + time.Second)
		if len(got) != len(want)+1 || !other.IsDoubted() {
			t.Errorf("after a day, %d reports, other stores are in doubt: %t", len(got)-len(want), other.IsDoubted())
		}
	})
}

// A closed stream is not listed any more.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newRestorations(nil)
		found, closed, late := openGroup(all, ""), openGroup(all, ""), openGroup(all, "")
		all.Close(closed.Detector)
		found.list("60")
		all.Close(late.Detector)
		time.Sleep(time.Minute)
		synctest.Wait()
		closed.check(t, "the closed stream", 0, 0, false)
		late.check(t, "the stream that was closed within the minute", 0, 0, true)
	})
}
