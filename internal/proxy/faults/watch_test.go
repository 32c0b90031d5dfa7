package faults_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// startWatch returns a program with a watch that has received one event, before step 0 began.
func startWatch(t *testing.T, query string) (*upstream, *faults.InjectingProxy, *program, *watching) {
	t.Helper()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	program := newProgram(t, p, "program")
	w := program.watch(maps + "?watch=true" + query)
	u.send("ADDED", "1")
	w.want("ADDED 1")
	begin(t, p, 0)
	return u, p, program, w
}

// waitHeld waits until the proxy holds n events.
func waitHeld(t *testing.T, p *faults.InjectingProxy, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for p.Activity().Held != n {
		if time.Now().After(deadline) {
			t.Fatalf("the proxy holds %d events, want %d", p.Activity().Held, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestWatchLags(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *faults.InjectingProxy){
		"disarmed":  func(_ *testing.T, p *faults.InjectingProxy) { p.Injector.Disarm() },
		"next step": func(t *testing.T, p *faults.InjectingProxy) { begin(t, p, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, p, _, w := startWatch(t, "")
			a := arm(t, p, faults.Fault{Kind: faults.WatchLag, Stream: "configmaps", Events: 1})
			u.send("MODIFIED", "2")
			w.want("MODIFIED 2")
			if isTriggered(a) {
				t.Error("the fault happens too early")
			}
			u.send("MODIFIED", "3")
			u.send("BOOKMARK", "4")
			u.send("DELETED", "5")
			waitHeld(t, p, 2)
			waitTriggered(t, a)
			w.wantNothing()
			if a := p.Activity(); a.StreamsBehind != 1 || a.InFlight != 0 {
				t.Errorf("the activity is %+v", a)
			}
			end(t, p)
			w.want("MODIFIED 3", "BOOKMARK 4", "DELETED 5")
			waitHeld(t, p, 0)
			u.send("ADDED", "6")
			w.want("ADDED 6")
		})
	}
}

// A lag once held a bookmark without any change, so that the program looked busy for ever.
func TestBookmarkBeforeTheFirstChangeDoesNotLag(t *testing.T) {
	t.Parallel()
	u, p, _, w := startWatch(t, "")
	a := arm(t, p, faults.Fault{Kind: faults.WatchLag, Stream: "configmaps"})
	u.send("BOOKMARK", "2")
	w.want("BOOKMARK 2")
	if isTriggered(a) {
		t.Error("a bookmark triggers the fault")
	}
	u.send("MODIFIED", "3")
	u.send("BOOKMARK", "4")
	waitHeld(t, p, 1)
	waitTriggered(t, a)
	w.wantNothing()
	p.Injector.Disarm()
	w.want("MODIFIED 3", "BOOKMARK 4")
}

func TestOtherStreamsDoNotLag(t *testing.T) {
	t.Parallel()
	u, p, _, w := startWatch(t, "")
	arm(t, p, faults.Fault{Kind: faults.WatchLag, Stream: "pods"})
	arm(t, p, faults.Fault{Kind: faults.WatchLag, Stream: "configmaps", Step: 1})
	u.send("MODIFIED", "2")
	w.want("MODIFIED 2")
}

func TestWatchIsCut(t *testing.T) {
	t.Parallel()
	u, p, program, w := startWatch(t, "")
	a := arm(t, p, faults.Fault{Kind: faults.WatchCut, Stream: "configmaps", Events: 1})
	u.send("MODIFIED", "2")
	u.send("MODIFIED", "3")
	w.want("MODIFIED 2", "broken")
	waitTriggered(t, a)
	w = program.watch(maps + "?watch=true&resourceVersion=2")
	u.send("MODIFIED", "3")
	w.want("MODIFIED 3")
}

func TestEventsComeTwice(t *testing.T) {
	t.Parallel()
	u, p, _, w := startWatch(t, "")
	a := arm(t, p, faults.Fault{Kind: faults.WatchTwice, Stream: "configmaps", Events: 1})
	u.send("MODIFIED", "2")
	w.want("MODIFIED 2")
	u.send("MODIFIED", "3")
	u.send("BOOKMARK", "4")
	u.send("DELETED", "5")
	w.want("MODIFIED 3", "MODIFIED 3", "BOOKMARK 4", "DELETED 5", "DELETED 5")
	waitTriggered(t, a)
	p.Injector.Disarm()
	u.send("ADDED", "6")
	u.send("ADDED", "7")
	w.want("ADDED 6", "ADDED 7")
}

func TestWatchExpires(t *testing.T) {
	t.Parallel()
	u, p, program, w := startWatch(t, "")
	a := arm(t, p, faults.Fault{Kind: faults.WatchExpired, Stream: "configmaps"})
	u.send("MODIFIED", "2")
	w.want("broken")
	if isTriggered(a) {
		t.Error("the fault happens before the next watch")
	}
	program.watch(maps + "?watch=true&resourceVersion=1").want("ERROR 410")
	waitTriggered(t, a)
	w = program.watch(maps + "?watch=true&resourceVersion=2")
	u.send("MODIFIED", "3")
	w.want("MODIFIED 3")
}

// TestProgramMissesStates checks that the program does not receive what was held, and has to list.
func TestProgramMissesStates(t *testing.T) {
	t.Parallel()
	u, p, program, w := startWatch(t, "")
	a := arm(t, p, faults.Fault{Kind: faults.WatchMissed, Stream: "configmaps"})
	u.send("MODIFIED", "2")
	u.send("DELETED", "3")
	waitHeld(t, p, 2)
	waitTriggered(t, a)
	w.wantNothing()
	p.Injector.Disarm()
	w.want("broken")
	program.watch(maps + "?watch=true&resourceVersion=1").want("ERROR 410")
	w = program.watch(maps + "?watch=true&resourceVersion=4")
	u.send("ADDED", "5")
	w.want("ADDED 5")
}

// TestPresentNeverExpires checks that a watch from the version of a list of a moment before is not
// answered with 410.
func TestPresentNeverExpires(t *testing.T) {
	t.Parallel()
	u, p, program, w := startWatch(t, "")
	arm(t, p, faults.Fault{Kind: faults.WatchExpired, Stream: "configmaps"})
	u.send("MODIFIED", "2")
	w.want("broken")
	program.send(http.MethodGet, maps, "")
	w = program.watch(maps + "?watch=true&resourceVersion=2")
	u.send("MODIFIED", "3")
	w.want("MODIFIED 3")
}

// TestStreamingListIsNotHeld checks that the first events of a streaming list pass. A streaming list
// never shows the past.
func TestStreamingListIsNotHeld(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	begin(t, p, 0)
	arm(t, p, faults.Fault{Kind: faults.WatchLag, Stream: "configmaps"})
	w := newProgram(t, p, "program").watch(maps + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	u.send("ADDED", "1")
	u.mu.Lock()
	u.events[0] <- `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	u.mu.Unlock()
	u.send("ADDED", "3")
	w.want("ADDED 1", "BOOKMARK 2")
	waitHeld(t, p, 1)
	w.wantNothing()
}

// TestPastIsShown checks which reads see the past: those of version 0 only.
func TestPastIsShown(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	program := newProgram(t, p, "program")
	begin(t, p, 0)
	a := arm(t, p, faults.Fault{Kind: faults.Stale})
	last := func() string {
		received := u.requests()
		return received[len(received)-1]
	}
	for _, path := range []string{maps, maps + "?resourceVersion=7", maps + "/a"} {
		if program.send(http.MethodGet, path, ""); last() != "GET "+path {
			t.Errorf("the server received %s in place of %s", last(), path)
		}
	}
	if isTriggered(a) {
		t.Error("the fault happens to a read of the present")
	}
	program.send(http.MethodGet, maps+"?resourceVersion=0", "")
	if want := "GET " + maps + "?resourceVersion=100&resourceVersionMatch=Exact"; last() != want {
		t.Errorf("the server received %s, want %s", last(), want)
	}
	if !isTriggered(a) {
		t.Error("the fault is not reported")
	}
	code, body := program.send(http.MethodGet, maps+"/a?resourceVersion=0", "")
	if want := "GET " + maps + "?fieldSelector=metadata.name%3Da&resourceVersion=100&resourceVersionMatch=Exact"; last() != want {
		t.Errorf("the server received %s, want %s", last(), want)
	}
	if want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`; code != 200 || body != want {
		t.Errorf("a get from the past is answered with %d %s, want %s", code, body, want)
	}
	code, body = program.send(http.MethodGet, maps+"?watch=true&sendInitialEvents=true&resourceVersion=0&resourceVersionMatch=NotOlderThan", "")
	if code != http.StatusUnprocessableEntity || !strings.Contains(body, `"reason":"Invalid"`) {
		t.Errorf("a streaming list of version 0 is answered with %d %s", code, body)
	}
	w := program.watch(maps + "?watch=true&resourceVersion=100")
	u.send("ADDED", "101")
	waitHeld(t, p, 1)
	w.wantNothing()
	p.Injector.Disarm()
	w.want("ADDED 101")
	program.send(http.MethodGet, maps+"?resourceVersion=0", "")
	if want := "GET " + maps + "?resourceVersion=0"; last() != want {
		t.Errorf("when the fault has ended, the server received %s", last())
	}
}

// What a program receives on its watches is recorded: the changes, and how many objects a streaming list
// begins with.
func TestDeliveriesAreRecorded(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	begin(t, p, 0)
	w := newProgram(t, p, "program").watch(maps + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	u.send("ADDED", "1")
	u.send("ADDED", "2")
	u.mu.Lock()
	u.events[0] <- `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"3","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	u.mu.Unlock()
	u.send("MODIFIED", "4")
	u.send("BOOKMARK", "5")
	w.want("ADDED 1", "ADDED 2", "BOOKMARK 3", "MODIFIED 4", "BOOKMARK 5")
	begin(t, p, 1)
	u.send("DELETED", "6")
	w.want("DELETED 6")
	var got []string
	for _, d := range p.Deliveries() {
		got = append(got, fmt.Sprint(d.Session, " ", d.Step, " ", d.Resource, " ", d.Type, " ", d.Name, " ", d.ObjectCount))
	}
	want := []string{"program 0 configmaps   2", "program 0 configmaps MODIFIED a 0", "program 1 configmaps DELETED a 0"}
	if !slices.Equal(got, want) {
		t.Errorf("the deliveries are %q, want %q", got, want)
	}
}
