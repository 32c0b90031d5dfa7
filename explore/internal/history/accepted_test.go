package history_test

import (
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// An entry with a rule accepts what breaks the rule. An entry without a rule accepts both.
func TestAcceptanceOfViolations(t *testing.T) {
	t.Parallel()
	a := accept(t, finding.Acceptance{Objects: "configmaps/kept", Path: "*", Rule: "gone"}, finding.Acceptance{Objects: "secrets", Path: "data"})
	for _, c := range []struct {
		rule, resource, name, path string
		want                       bool
	}{
		{"gone", "configmaps", "kept", "", true},
		{"remade", "configmaps", "kept", "", false},
		{"gone", "configmaps", "other", "", false},
		{"what others put", "secrets", "web", "data.password", true},
		{"what others put", "secrets", "web", "", false},
	} {
		if got := a.AcceptViolation(c.rule, faults.Object{Resource: c.resource, Name: c.name}, c.path); got != c.want {
			t.Errorf("%+v: accepted is %t", c, got)
		}
	}
}

// Where the references break a rule, a run that is right does not differ from them. All else is compared.
func TestExemptionFromTheComparison(t *testing.T) {
	t.Parallel()
	reference := func(namespace string) *run {
		return newRun(t, namespace).write("configmaps", "left", `{"data":{"k":"v"}}`, "data.k").write("configmaps", "other", `{"data":{"k":"v"}}`, "data.k").next()
	}
	a, b := reference("run-1"), reference("run-22")
	o := history.Options{Accepted: accept(t)}
	m, err := history.NewMasks([]history.State{a.State(), b.State()}, o)
	if err != nil {
		t.Fatal(err)
	}
	right := reference("run-333").delete("configmaps", "left").delete("configmaps", "other")
	references := []history.History{a.History, b.History}
	expect(t, lines(m.Compare(a.State(), right.State())), "configmaps/left is missing", "configmaps/other is missing")
	if got := history.Destroyed(references, right.History, o); len(got) != 2 {
		t.Errorf("without an exemption the destructions are %v", got)
	}
	left := faults.Object{Resource: "configmaps", Name: "left"}
	o.Accepted.Exempt(left, "")
	expect(t, lines(m.Compare(a.State(), right.State())), "configmaps/other is missing")
	if got := history.Destroyed(references, right.History, o); len(got) != 1 || got[0].Object.Name != "other" {
		t.Errorf("with an exemption the destructions are %v", got)
	}
	if o.Accepted.AcceptViolation("gone", left, "") {
		t.Error("an exemption accepts what breaks a rule")
	}
}

// A change of times alone is no change at rest, such as that of a heartbeat. A write without any change is one.
func TestHeartbeatIsNoChange(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{`{"lastHeartbeatTime":"NOW"}`: 0, `{"phase":"Running"}`: 1} {
		r := newRun(t, "run-1")
		for range 2 {
			r.write("sites.example.com", "web", `{"status":`+status+`}`, "status")
		}
		if got := history.Changes(r.History, 1, history.Options{}); len(got) != want {
			t.Errorf("after a second write of %s the changes are %v, want %d", status, got, want)
		}
	}
}
