package restoration

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

var (
	web = kube.Key{Namespace: "ns", Name: "web"}
	api = kube.Key{Namespace: "ns", Name: "api"}
)

// testStream is a stream of the example in doc.go.
type testStream struct {
	*Detector
	*Recorder
	relists int
}

// open opens a stream that is listed at version 100.
func open(r *Restorations, s kube.Stream) *testStream {
	t := &testStream{}
	t.Detector, t.Recorder = r.Open(s, func() { t.relists++ })
	t.list("100")
	return t
}

// list makes a list at version, and returns its Finding.
func (s *testStream) list(version string) ListResult {
	s.BeginList()
	f := s.CheckList(version)
	s.EndList(version, f)
	return f
}

// The example in doc.go: each of the observations leads to a fresh list. The list puts the other store, which
// is newer, in doubt, until it is listed too.
func TestExample(t *testing.T) {
	t.Parallel()
	for name, observe := range map[string]func(*testing.T, *testStream){
		"the watch passes the expected version": func(t *testing.T, s *testStream) {
			if err := s.Advance("121", web); err == nil {
				t.Error("no error is returned")
			}
		},
		"an answer is older than the object in the store": func(_ *testing.T, s *testStream) {
			s.CheckAnswer(DetectorState{Object: ident.NewVersion("u", "110"), Reached: "110"}, ident.NewVersion("u", "103"), "")
		},
		"an answer should be in the store": func(_ *testing.T, s *testStream) {
			s.CheckAnswer(DetectorState{Reached: "110"}, ident.NewVersion("u", "103"), "")
		},
		"a watch does not reach the expected version within a minute": func(t *testing.T, s *testStream) {
			time.Sleep(time.Second)
			s.RecordWatchOpened()
			time.Sleep(59 * time.Second)
			s.CheckOverdue()
			if s.relists > 0 {
				t.Error("a list was asked for too early")
			}
			time.Sleep(2 * time.Second)
			s.CheckOverdue()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var all Restorations
				deployments, pods, older := open(&all, kube.Stream{}), open(&all, kube.Stream{}), open(&all, kube.Stream{})
				elsewhere := open(&all, kube.Stream{Cluster: "other"})
				if err := deployments.Advance("110", web); err != nil {
					t.Fatal(err)
				}
				if err := pods.Advance("115", api); err != nil {
					t.Fatal(err)
				}
				deployments.Expect(api, "120", "")
				observe(t, deployments)
				if deployments.relists != 1 || !deployments.IsDoubted() {
					t.Errorf("%d lists were asked for, in doubt: %t", deployments.relists, deployments.IsDoubted())
				}
				if f := deployments.list("107"); !f.IsRestoration || f.Kept != "107" {
					t.Errorf("the list has the finding %+v", f)
				}
				if deployments.IsDoubted() || older.IsDoubted() || elsewhere.IsDoubted() {
					t.Error("a store is in doubt that is not affected")
				}
				if pods.relists != 1 || !pods.IsDoubted() {
					t.Errorf("of the newer store %d lists were asked for, in doubt: %t", pods.relists, pods.IsDoubted())
				}
				if f := pods.list("108"); pods.IsDoubted() || !f.IsRestoration {
					t.Errorf("after its list the newer store has the finding %+v, in doubt: %t", f, pods.IsDoubted())
				}
				if n := all.count.Load(); n != 1 {
					t.Errorf("%d restorations are counted", n)
				}
			})
		})
	}
}

// A restored server has passed the versions of the stream before it was listed. What it had at the version
// before the proof counts as kept.
func TestKeptVersionAfterALateList(t *testing.T) {
	t.Parallel()
	var all Restorations
	s := open(&all, kube.Stream{})
	_ = s.Advance("110", web)
	s.Expect(api, "120", "")
	if s.Advance("121", web) == nil {
		t.Error("no proof is found")
	}
	if f := s.list("130"); !f.IsRestoration || f.Kept != "110" {
		t.Errorf("the list has the finding %+v", f)
	}
}

// A list that does not reach an expected version is a proof by itself, if it began after the answer.
func TestListLacksAnExpectedVersion(t *testing.T) {
	t.Parallel()
	var all Restorations
	s := open(&all, kube.Stream{})
	s.Expect(api, "120", "")
	s.BeginList()
	s.Expect(web, "125", "") // the answer came within the list, which need not show it
	if f := s.CheckList("120"); f.IsRestoration {
		t.Errorf("a list that reaches the version has the finding %+v", f)
	}
	if f := s.CheckList("107"); !f.IsRestoration || f.Err == nil {
		t.Errorf("a list that does not reach the version has the finding %+v", f)
	}
}

// What the stream shows, or does not select, is no loss.
func TestNoLoss(t *testing.T) {
	t.Parallel()
	var all Restorations
	s := open(&all, kube.Stream{LabelSelector: "app=web"})
	s.Expect(web, "105", `{"app":"web"}`)
	s.Expect(api, "104", `{"app":"api"}`)
	s.Expect(web, "99", `{"app":"web"}`)
	for version, k := range map[string]kube.Key{"105": web} {
		if err := s.Advance(version, k); err != nil {
			t.Error(err)
		}
	}
	s.CheckAnswer(DetectorState{Object: ident.NewVersion("u", "105"), Reached: "105"}, ident.NewVersion("u", "105"), `{"app":"web"}`)
	s.CheckAnswer(DetectorState{Object: ident.NewVersion("u", "101"), Reached: "105"}, ident.NewVersion("v", "103"), `{"app":"api"}`)
	s.CheckAnswer(DetectorState{Reached: "105"}, ident.NewVersion("v", "106"), `{"app":"web"}`)
	if s.relists != 0 || s.IsDoubted() {
		t.Errorf("%d lists were asked for, in doubt: %t", s.relists, s.IsDoubted())
	}
}

// A server that contradicts itself all the time leads to one list a minute.
func TestProofsAreRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Restorations
		s := open(&all, kube.Stream{})
		for range 600 {
			s.CheckAnswer(DetectorState{Reached: "100"}, ident.NewVersion("u", "90"), "")
			time.Sleep(time.Second)
		}
		if s.relists != 10 {
			t.Errorf("%d lists were asked for in ten minutes", s.relists)
		}
	})
}

// A closed stream is not listed any more.
func TestClose(t *testing.T) {
	t.Parallel()
	var all Restorations
	found, closed := open(&all, kube.Stream{}), open(&all, kube.Stream{})
	_ = closed.Advance("110", web)
	all.Close(closed.Detector)
	_ = found.Advance("105", web)
	if f := found.list("101"); !f.IsRestoration || closed.relists > 0 {
		t.Errorf("the list has the finding %+v, and a closed stream was listed %d times", f, closed.relists)
	}
}
