package history_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// exampleRun returns a run of an operator that makes a Deployment, a Secret, a Service and two Pods for a custom object.
func exampleRun(t *testing.T, namespace, password string) *run {
	r := newRun(t, namespace)
	r.writeAs("user", "apps.example.com", "web", `{"spec":{"size":3},"status":{"ready":true,"url":"http://web.NS.svc","since":"NOW"}}`, "spec.size")
	r.write("deployments.apps", "web", `{"metadata":{"labels":{"app":"web"},"ownerReferences":[{"apiVersion":"example.com/v1","kind":"App","name":"web","uid":"`+
		string(r.Versions[0].UID)+`"}]},"spec":{"replicas":3,"paused":false,"template":{"spec":{"containers":[{"name":"a","image":"i:1"},{"name":"b","image":"i:2"}]}}}}`,
		"metadata.labels.app", "metadata.ownerReferences", "spec.replicas", "spec.template")
	r.write("secrets", "web", `{"data":{"password":"`+password+`"}}`, "data.password")
	r.write("services", "web", `{"spec":{"clusterIP":"10.0.0.`+namespace[len(namespace)-1:]+`","ports":[{"port":80,"nodePort":3000`+namespace[len(namespace)-1:]+`}]}}`, "spec")
	r.write("pods", "web-x2x9"+strings.Repeat("k", len(namespace)), `{"metadata":{"generateName":"web-"},"spec":{"role":"first"}}`, "spec")
	r.write("pods", "web-c4c4"+strings.Repeat("b", len(namespace)), `{"metadata":{"generateName":"web-"},"spec":{"role":"second"}}`, "spec")
	r.writeAs("kube-controller-manager", "replicasets.apps", "web-5d4f8c9b7", `{"spec":{"replicas":3}}`, "spec.replicas")
	r.write("events", "web.1", `{"message":"`+namespace+`"}`, "message")
	return r
}

func TestMask(t *testing.T) {
	t.Parallel()
	options := history.Options{Users: []string{"user"}}
	masks := func(t *testing.T, o history.Options, runs ...*run) (*history.Masks, error) {
		states := make([]history.State, len(runs))
		for i, r := range runs {
			states[i] = r.State()
		}
		return history.NewMasks(states, o)
	}
	a, b, c := exampleRun(t, "run-1", "cGFzc3dvcmQ="), exampleRun(t, "run-22", "b3RoZXI="), exampleRun(t, "run-333", "dGhpcmQ=")
	m, err := masks(t, options, a, b, c)
	if err != nil {
		t.Fatal(err)
	}
	if varying := m.Varying(); !slices.Equal(varying, []string{"secrets/web: data.password"}) {
		t.Errorf("the masks have %q", varying)
	}
	expect(t, lines(m.Compare(a.State(), c.State())))

	for name, test := range map[string]struct {
		options history.Options
		runs    []*run
		want    string
	}{
		"one reference": {options, []*run{a}, "1 reference run"},
		"an object in one reference": {options, []*run{a, b, exampleRun(t, "run-333", "").write("configmaps", "more", `{"data":{"k":"v"}}`, "data.k")},
			"configmaps/more is in 1 of 3 reference runs"},
		"a field in one reference": {options, []*run{a, b, exampleRun(t, "run-333", "").write("secrets", "web", `{"data":{"password":"","more":""}}`, "data.more")},
			"secrets/web: data.more is in 1 of 3 reference runs"},
		"an object that is accepted in runs with faults": {
			history.Options{Accepted: accept(t, finding.Acceptance{Objects: "configmaps", Path: "*", Faults: []faults.Kind{faults.Crash}})},
			[]*run{a, b, exampleRun(t, "run-333", "").write("configmaps", "more", `{"data":{"k":"v"}}`, "data.k")}, "configmaps/more is in 1 of 3 reference runs",
		},
	} {
		if _, err := masks(t, test.options, test.runs...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %s", name, err, test.want)
		}
	}

	options.Accepted = accept(t, finding.Acceptance{Objects: "configmaps/*", Path: "*"})
	if _, err := masks(t, options, a, b, exampleRun(t, "run-333", "").write("configmaps", "more", `{"data":{"k":"v"}}`, "data.k")); err != nil {
		t.Errorf("an accepted object: %v", err)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]finding.Acceptance{
		"the accepted path secrets/web status has no reason": {Objects: "secrets/web", Path: "status", Reason: " "},
		"an accepted path is empty":                          {Reason: "slow"},
	} {
		if _, err := history.NewAccepted(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// An acceptance is used if a difference has matched it, although the difference varies between the references.
func TestUnusedAcceptances(t *testing.T) {
	t.Parallel()
	a, b := exampleRun(t, "run-1", "cGFzc3dvcmQ="), exampleRun(t, "run-22", "b3RoZXI=")
	accepted := accept(t,
		finding.Acceptance{Objects: "secrets", Path: "data"},
		finding.Acceptance{Objects: "deployments.apps/web", Path: "spec.replicas"},
		finding.Acceptance{Path: "spec.size", Faults: []faults.Kind{faults.Crash}},
	)
	m, err := history.NewMasks([]history.State{a.State(), b.State()}, history.Options{Users: []string{"user"}, Accepted: accepted})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, lines(accepted.Unused()), "deployments.apps/web spec.replicas (it is the test)", "spec.size")
	c := exampleRun(t, "run-333", "").write("deployments.apps", "web", `{"spec":{"replicas":2}}`, "spec.replicas")
	expect(t, lines(onlyBelow(m.Compare(a.State(), c.State(), faults.Stale), "spec.replicas")))
	expect(t, lines(accepted.Unused()), "spec.size")
}

// onlyBelow returns the differences at a path.
func onlyBelow(differences []finding.Difference, path string) []finding.Difference {
	return slices.DeleteFunc(differences, func(d finding.Difference) bool { return d.Path != path })
}

func TestCompare(t *testing.T) {
	t.Parallel()
	const archive = "UEsDBBQAAAAAAAAAIQDQZBbCCgAAAAoAAAAIAAAAb3JpZ2luYWx7InNwZWMiOjF9UEsBAhQDFAAAAAAAAAAhANBkFsIKAAAACgAAAAgAAAAAAAAAAAAAAIABAAAAAG9yaWdpbmFsUEsFBgAAAAABAAEANgAAADAAAAAAAA==" // of {"spec":1}
	for name, test := range map[string]struct {
		change func(r *run)
		accept string
		want   []string
	}{
		"nothing": {change: func(*run) {}},
		"a field": {
			change: func(r *run) { r.write("configmaps", "c", `{"data":{"a":"2"}}`, "data.a") },
			want:   []string{`configmaps/c: data.a is "2", want "1"`},
		},
		"a field of somebody else": {change: func(r *run) { r.write("configmaps", "c", `{"data":{"a":"1","b":"2"}}`, "data.a") }},
		"a field that somebody else has taken": {
			change: func(r *run) { r.writeAs("user", "configmaps", "c", `{"data":{"a":"2"}}`, "data.a") },
			want:   []string{`configmaps/c: data.a is "2", want "1"`},
		},
		"a field too many": {
			change: func(r *run) { r.write("configmaps", "c", `{"data":{"a":"1","x.y":"2"}}`, "data") },
			want:   []string{`configmaps/c: data[x.y] should not be set, and is "2"`},
		},
		"a field is missing": {
			change: func(r *run) { r.write("configmaps", "c", `{"data":{}}`, "data") },
			want:   []string{`configmaps/c: data.a is missing, want "1"`},
		},
		"an object is missing":  {change: func(r *run) { r.delete("configmaps", "c") }, want: []string{"configmaps/c is missing"}},
		"an object too many":    {change: func(r *run) { r.write("configmaps", "d", `{"data":{"a":"1"}}`, "data.a") }, want: []string{"configmaps/d should not exist"}},
		"a generated duplicate": {change: func(r *run) { r.write("pods", "p-c4c4c", `{"metadata":{"generateName":"p-"},"spec":{}}`, "spec") }, want: []string{"pods/p-* (2) should not exist"}},
		"an object of a user":   {change: func(r *run) { r.writeAs("user", "configmaps", "d", `{}`, "data") }},
		"an object that is being deleted": {
			change: func(r *run) {
				r.write("configmaps", "c", `{"metadata":{"deletionTimestamp":"NOW"},"data":{"a":"1"}}`, "data.a")
			},
			want: []string{`configmaps/c: metadata.deletionTimestamp should not be set`},
		},
		"a status": {
			change: func(r *run) {
				r.writeAs("user", "apps.example.com", "web", `{"spec":{"size":4},"status":{"ready":false}}`, "spec.size")
			},
			want: []string{`apps.example.com/web: status.ready is false, want true`},
		},
		"an accepted status": {
			change: func(r *run) {
				r.writeAs("user", "apps.example.com", "web", `{"spec":{"size":4},"status":{"ready":false}}`, "spec.size")
			},
			accept: "apps.example.com status",
		},
		// An operator of Redis keeps what it has applied in an archive. An exploration took the archive for a value that it chooses.
		"an archive of what was applied": {change: func(r *run) {
			r.write("configmaps", "c", `{"metadata":{"annotations":{"last-applied":"`+archive+`"}},"data":{"a":"1"}}`, "metadata.annotations", "data.a")
		}},
		"an annotation of the exploration in a child": {change: func(r *run) {
			r.write("configmaps", "c", `{"metadata":{"annotations":{"`+faults.ChangedAnnotation+`":"NOW"}},"data":{"a":"1"}}`, "metadata.annotations", "data.a")
		}},
		"an empty object in a status": {change: func(r *run) {
			r.writeAs("user", "apps.example.com", "web", `{"spec":{"size":3},"status":{"ready":true,"problem":{}}}`, "spec.size")
		}},
		"a member of an object in a status": {
			change: func(r *run) {
				r.writeAs("user", "apps.example.com", "web", `{"spec":{"size":3},"status":{"ready":true,"problem":{"code":"Failed"}}}`, "spec.size")
			},
			want: []string{`apps.example.com/web: status.problem.code should not be set, and is "Failed"`},
		},
		"an empty object outside of a status": {
			change: func(r *run) { r.write("configmaps", "c", `{"data":{"a":"1"},"immutable":{}}`, "data.a", "immutable") },
			want:   []string{`configmaps/c: immutable should not be set, and is {}`},
		},
		"a finished Job": {change: func(r *run) {
			r.write("jobs.batch", "j", `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, "spec")
		}},
		"a Job that has not finished": {
			change: func(r *run) { r.write("jobs.batch", "j", `{"spec":{}}`, "spec") }, want: []string{"jobs.batch/j should not exist"},
		},
		"a claim of a StatefulSet": {change: func(r *run) {
			r.writeAs("kube-controller-manager", "persistentvolumeclaims", "data-web-0", `{"spec":{"accessModes":["ReadWriteOnce"]}}`, "spec.accessModes")
		}},
		"a time": {change: func(r *run) { r.write("configmaps", "t", `{"data":{"at":"NOW"}}`, "data.at") }},
		"another time": {
			change: func(r *run) { r.write("configmaps", "t", `{"data":{"at":"1999-01-01T00:00:00Z"}}`, "data.at") },
			want:   []string{`data.at is "1999-01-01T00:00:00Z", want "<time>"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := func(namespace string) *run {
				r := newRun(t, namespace)
				r.writeAs("user", "apps.example.com", "web", `{"spec":{"size":3},"status":{"ready":true}}`, "spec.size")
				r.write("configmaps", "c", `{"data":{"a":"1"}}`, "data.a")
				r.write("configmaps", "t", `{"data":{"at":"NOW"}}`, "data.at")
				return r.write("pods", "p-x2x9k", `{"metadata":{"generateName":"p-"},"spec":{}}`, "spec")
			}
			options := history.Options{Users: []string{"user"}}
			if test.accept != "" {
				objects, path, _ := strings.Cut(test.accept, " ")
				options.Accepted = accept(t, finding.Acceptance{Objects: objects, Path: path})
			}
			want, got := base("run-1"), base("run-22")
			m, err := history.NewMasks([]history.State{want.State(), base("run-333").State()}, options)
			if err != nil {
				t.Fatal(err)
			}
			test.change(got)
			expect(t, lines(m.Compare(want.State(), got.State())), test.want...)
		})
	}
}

// The password of a Secret is neither in the masks nor in the differences.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	a, b := newRun(t, "run-1"), newRun(t, "run-22")
	for _, r := range []*run{a, b} {
		r.write("secrets", "s", `{"data":{"url":"`+map[string]string{"run-1": "cGc6Ly9ydW4tMQ==", "run-22": "cGc6Ly9ydW4tMjI="}[r.Namespaces[0]]+`"}}`, "data.url") // pg://NAMESPACE
	}
	m, err := history.NewMasks([]history.State{a.State(), b.State()}, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Varying()) > 0 {
		t.Errorf("the namespace within a Secret counts as a difference: %q", m.Varying())
	}
	b.write("secrets", "s", `{"data":{"url":"c2VjcmV0"}}`, "data.url")
	got := lines(m.Compare(a.State(), b.State()))
	expect(t, got, "secrets/s: data.url is")
	if strings.Contains(got[0], "c2VjcmV0") || strings.Contains(got[0], `"secret"`) {
		t.Errorf("the difference shows the password: %s", got[0])
	}
}

// The names within a value of a Secret that is compressed by gzip are replaced like the names in other values.
func TestCompressedSecretsAreCompared(t *testing.T) {
	t.Parallel()
	compressed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		fmt.Fprint(w, text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return `{"data":{"config":"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"}}`
	}
	a, b := newRun(t, "run-1"), newRun(t, "run-22")
	a.write("secrets", "s", compressed("namespace: run-1"), "data.config")
	b.write("secrets", "s", compressed("namespace: run-22"), "data.config")
	m, err := history.NewMasks([]history.State{a.State(), b.State()}, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Varying()) > 0 {
		t.Errorf("the namespace within a compressed Secret counts as a difference: %q", m.Varying())
	}
	b.write("secrets", "s", compressed("namespace: other"), "data.config")
	expect(t, lines(m.Compare(a.State(), b.State())), "secrets/s: data.config is")
}

// The states are the states of the server, although the recorder received the versions in another order.
func TestStatesAreInTheOrderOfTheServer(t *testing.T) {
	t.Parallel()
	r := newRun(t, "run-1").write("configmaps", "c", `{}`).write("secrets", "s", `{}`).delete("configmaps", "c").write("pods", "p", `{}`)
	slices.Reverse(r.Versions[1:3]) // the deletion came first
	var got []string
	for v, state := range r.States() {
		names := state.ObjectOf(v).String() + ":"
		for _, o := range state.Objects() {
			names += " " + o.Name
		}
		got = append(got, names)
	}
	want := []string{"configmaps/c: c", "secrets/s: c s", "configmaps/c: s", "pods/p: p s"}
	if !slices.Equal(got, want) {
		t.Errorf("the states are %q, want %q", got, want)
	}
}
