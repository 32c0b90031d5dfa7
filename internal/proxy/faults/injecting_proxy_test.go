package faults_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

const maps = "/api/v1/namespaces/run/configmaps"

func options(u *upstream) faults.Options {
	return faults.Options{
		Target: &kube.Config{Host: u.url}, Namespace: "run",
		Normalize: func(name string) string { return strings.ReplaceAll(name, "x2x9k", "*") },
	}
}

func TestSessionIsCutOff(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	cut, other := newProgram(t, p, "first"), newProgram(t, p, "second")
	w := cut.watch(maps + "?watch=true")
	u.send("ADDED", "1")
	w.want("ADDED 1")
	cut.session.CutOff()
	w.want("broken")
	if code, _ := cut.send(http.MethodGet, maps, ""); code != 0 {
		t.Errorf("a session that is cut off is answered with %d", code)
	}
	if code, _ := other.send(http.MethodGet, maps, ""); code != http.StatusOK {
		t.Errorf("the other session is answered with %d", code)
	}
	config := other.session.Config()
	config.BearerToken = "guessed"
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		t.Fatal(err)
	}
	stranger := &program{t: t, host: config.Host, transport: transport}
	if code, _ := stranger.send(http.MethodGet, maps, ""); code != http.StatusUnauthorized {
		t.Errorf("a stranger is answered with %d", code)
	}
	requests := p.Requests()
	if len(requests) != 2 || requests[0].Session != "first" || requests[1].Session != "second" {
		t.Errorf("the proxy recorded %v", requests)
	}
}

// TestCloseEndsWatches is not parallel, because it counts goroutines.
func TestCloseEndsWatches(t *testing.T) {
	u := newUpstream(t)
	before := goleak.IgnoreCurrent()
	p, err := faults.New(options(u))
	if err != nil {
		t.Fatal(err)
	}
	begin(t, p, 0)
	arm(t, p, faults.Fault{Kind: faults.WatchLag, Stream: "configmaps"})
	program := newProgram(t, p, "program")
	w := program.watch(maps + "?watch=true")
	u.send("ADDED", "1")
	waitHeld(t, p, 1)
	p.Close()
	w.want("broken")
	if _, err := p.NewSession("late"); err == nil {
		t.Error("a closed proxy gives a session")
	}
	u.close() // its connections have goroutines, too
	goleak.VerifyNone(t, before)
}

func TestConfigOfSession(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	program := newProgram(t, p, "program")
	response, err := program.open(http.MethodGet, maps, "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Errorf("the proxy speaks %s", response.Proto)
	}
	kubeconfig := program.session.Kubeconfig()
	for _, want := range []string{program.session.Config().Host, program.session.Config().BearerToken, `"namespace":"run"`} {
		if !strings.Contains(string(kubeconfig), want) {
			t.Errorf("the kubeconfig lacks %s: %s", want, kubeconfig)
		}
	}
}

// TestPointsAreTheSameInAnotherRun checks that a point has nothing of what differs between runs.
func TestPointsAreTheSameInAnotherRun(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	program := newProgram(t, p, "program")
	pointOf := func(method, path, body string) proxy.Point {
		t.Helper()
		program.send(method, path, body)
		requests := p.Requests()
		return requests[len(requests)-1].Point
	}
	first := pointOf(http.MethodGet, maps+"/a-x2x9k", "")
	if want := (proxy.Point{Step: -1, Verb: "get", Resource: "configmaps", Name: "a-*", Occurrence: 1}); first != want {
		t.Errorf("the point of a get is %+v", first)
	}
	begin(t, p, 1)
	bodies := []string{
		`{"metadata":{"name":"a","uid":"1","resourceVersion":"5","ownerReferences":[{"name":"web-x2x9k","uid":"2"}]},
			"data":{"at":"2026-01-02T03:04:05Z","host":"a.run.svc","id":"0b1e0b1e-0000-0000-0000-000000000001"}}`,
		`{"data":{"host":"a.run.svc","id":"0b1e0b1e-0000-0000-0000-00000000000f","at":"2026-02-02T03:04:05.123456Z"},
			"metadata":{"name":"a","uid":"3","resourceVersion":"6","ownerReferences":[{"name":"web-*","uid":"4"}]}}`,
	}
	var created []proxy.Point
	for _, body := range bodies {
		created = append(created, pointOf(http.MethodPost, maps, body))
	}
	want := proxy.Point{Step: 1, Verb: "create", Resource: "configmaps", Name: "a", ChangeHash: created[0].ChangeHash, Occurrence: 1}
	if created[0] != want || want.ChangeHash == "" {
		t.Errorf("the point of a create is %+v", created[0])
	}
	want.Occurrence = 2
	if created[1] != want {
		t.Errorf("the same create in another run is %+v, want %+v", created[1], want)
	}
	changed := pointOf(http.MethodPost, maps, strings.Replace(bodies[0], "a.run.svc", "b.run.svc", 1))
	if changed.ChangeHash == want.ChangeHash || changed.Occurrence != 1 {
		t.Errorf("another change is %+v", changed)
	}
	begin(t, p, 2)
	if again := pointOf(http.MethodPost, maps, bodies[0]); again.Step != 2 || again.Occurrence != 1 {
		t.Errorf("the same change in the next step is %+v", again)
	}
	secrets := "/api/v1/namespaces/run/secrets"
	one := pointOf(http.MethodPost, secrets, `{"metadata":{"name":"s"},"data":{"password":"YWJj"}}`)
	two := pointOf(http.MethodPost, secrets, `{"metadata":{"name":"s"},"data":{"password":"eHl6"}}`)
	if one.ChangeHash != two.ChangeHash {
		t.Error("a random password makes another point")
	}
	one = pointOf(http.MethodPatch, maps+"/a", `[{"op":"test","path":"/metadata/resourceVersion","value":"1"}]`)
	two = pointOf(http.MethodPatch, maps+"/a", `[{"op":"test","path":"/metadata/resourceVersion","value":"2"}]`)
	if one.ChangeHash != two.ChangeHash {
		t.Error("the version in a JSON patch makes another point")
	}
}

func TestRequestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind faults.Kind
		// code is 0 if the connection breaks.
		code        int
		isForwarded bool
	}{
		{faults.Crash, 0, false},
		{faults.Reset, 0, false},
		{faults.Refused403, 403, false},
		{faults.Refused429, 429, false},
		{faults.Refused500, 500, false},
		{faults.Refused503, 503, false},
		{faults.Refused504, 504, false},
		{faults.CommittedReset, 0, true},
		{faults.Committed500, 500, true},
		{faults.Committed504, 504, true},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t)
			p := newProxy(t, options(u))
			program := newProgram(t, p, "program")
			program.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`)
			point := p.Requests()[0].Point
			point.Step, point.Occurrence = 0, 2
			begin(t, p, 0)
			a := arm(t, p, faults.Fault{Kind: c.kind, At: &point})
			if code, _ := program.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`); code != 200 || isTriggered(a) {
				t.Fatalf("the occurrence before is answered with %d", code)
			}
			code, body := program.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`)
			if code != c.code {
				t.Errorf("the request is answered with %d (%s)", code, body)
			}
			if code != 0 && !strings.Contains(body, `"kind":"Status"`) {
				t.Errorf("the answer is %s", body)
			}
			if !isTriggered(a) {
				t.Error("the fault is not reported")
			}
			want := 2
			if c.isForwarded {
				want = 3
			}
			if n := len(u.requests()); n != want {
				t.Errorf("the server received %d requests, want %d", n, want)
			}
			requests := p.Requests()
			if last := requests[2]; last.Fault != string(c.kind) || last.Code != c.code {
				t.Errorf("the proxy recorded %+v", last)
			}
			code, _ = program.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`)
			if wantsAnswer := c.kind != faults.Crash; (code == 200) != wantsAnswer {
				t.Errorf("the next request is answered with %d", code)
			}
		})
	}
}

// TestForbiddenIsPlannedIfNamed checks that a refusal by the authorizer is planned at each request, and not by default.
func TestForbiddenIsPlannedIfNamed(t *testing.T) {
	t.Parallel()
	points := []proxy.Point{{Verb: "patch", Resource: "configmaps", Name: "page"}, {Verb: "list", Resource: "configmaps"}}
	for _, test := range []struct {
		kinds []faults.Kind
		want  int
	}{{faults.DefaultKinds(), 0}, {[]faults.Kind{faults.Refused403}, len(points)}} {
		runs := planned(t, &faults.PlanInput{Kinds: test.kinds, Points: points, Steps: make([]faults.Step, 1)})
		runs = slices.DeleteFunc(runs, func(run []faults.Fault) bool { return run[0].Kind != faults.Refused403 })
		if len(runs) != test.want {
			t.Errorf("of the kinds %v, refused-403 is planned in the runs %v, want %d", test.kinds, runs, test.want)
		}
	}
}

// TestConflictIsReal checks that somebody else changes the object before the request.
func TestConflictIsReal(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	program := newProgram(t, p, "program")
	begin(t, p, 0)
	program.send(http.MethodPut, maps+"/a/status", `{"status":{}}`)
	point := p.Requests()[0].Point
	point.Occurrence = 2
	a := arm(t, p, faults.Fault{Kind: faults.Conflict, At: &point})
	program.send(http.MethodPut, maps+"/a/status", `{"status":{}}`)
	received := u.requests()
	if len(received) != 3 || !strings.HasPrefix(received[1], "PATCH "+maps+"/a?fieldManager=explorer-conflict") || !strings.Contains(received[1], "annotations") ||
		!strings.HasPrefix(received[2], "PUT "+maps+"/a/status") {
		t.Errorf("the server received\n%s", strings.Join(received, "\n"))
	}
	if !isTriggered(a) {
		t.Error("the fault is not reported")
	}
}

func TestArmRefuses(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	for _, f := range []faults.Fault{{Kind: faults.Crash}, {Kind: faults.WatchLag}, {Kind: faults.ForeignEdit}} {
		if _, err := p.Injector.Arm(f); err == nil || !strings.Contains(err.Error(), string(f.Kind)) {
			t.Errorf("arming %+v: %v", f, err)
		}
	}
}

func TestRunIsNarrowedToItsNamespace(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	program := newProgram(t, p, "program")
	for _, c := range []struct{ path, received string }{
		{"/api/v1/configmaps?limit=5", maps + "?limit=5"},
		{"/api/v1/nodes", "/api/v1/nodes"},
		{"/api/v1/namespaces/other/configmaps", "/api/v1/namespaces/other/configmaps"},
		{"/api/v1/nodes/n", "/api/v1/nodes/n"},
	} {
		code, _ := program.send(http.MethodGet, c.path, "")
		received := u.requests()
		if last := received[len(received)-1]; code != 200 || last != "GET "+c.received {
			t.Errorf("%s is answered with %d, and the server received %s", c.path, code, last)
		}
	}
	program.watch("/api/v1/configmaps?watch=true")
	received := u.requests()
	if last := received[len(received)-1]; last != "GET "+maps+"?watch=true" {
		t.Errorf("the server received %s", last)
	}
	if code, _ := program.send(http.MethodGet, "/api/v1/unknowns", ""); code != http.StatusNotFound {
		t.Errorf("a list of an unknown resource is answered with %d", code)
	}
	code, _ := program.send(http.MethodPost, "/api/v1/namespaces/other/configmaps", `{"metadata":{"name":"a"}}`)
	all := p.Requests()
	if last := all[len(all)-1]; code != http.StatusForbidden || !last.IsOutOfBounds || last.Name != "a" {
		t.Errorf("a write in another namespace is answered with %d, and recorded as %+v", code, last)
	}
	if n := len(u.requests()); n != len(received) {
		t.Errorf("the server received %s", u.requests()[len(received):])
	}
	if slices.ContainsFunc(all[:len(all)-1], func(r proxy.RequestRecord) bool { return r.IsOutOfBounds }) {
		t.Errorf("a read is out of bounds: %+v", all)
	}
}

func TestActivity(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	program := newProgram(t, p, "program")
	program.watch(maps + "?watch=true")
	if a := p.Activity(); a.InFlight != 0 || a.LastRequest.IsZero() {
		t.Errorf("with a watch, the activity is %+v", a)
	}
	before := p.Activity().LastRequest
	program.send(http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/run/leases/l", `{}`)
	if a := p.Activity(); a.LastRequest != before {
		t.Errorf("the update of a Lease counts: %+v", a)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	o := options(u)
	o.Delay = time.Hour
	p := newProxy(t, o)
	program := newProgram(t, p, "program")
	ended := make(chan int)
	go func() {
		code, _ := program.send(http.MethodGet, maps, "")
		ended <- code
	}()
	for p.Activity().InFlight != 1 {
		time.Sleep(time.Millisecond)
	}
	if n := len(u.requests()); n != 0 {
		t.Errorf("the server received %d requests during the delay", n)
	}
	program.session.CutOff()
	if code := <-ended; code != 0 {
		t.Errorf("a delayed request of a session that was cut off is answered with %d", code)
	}
	for p.Activity().InFlight != 0 {
		time.Sleep(time.Millisecond)
	}
}
