package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// A rule judges the program by what was delivered or answered to it, and never by what the server had.
func TestServerStateThatWasNotDeliveredDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		isDelivered bool
		want        []string
	}{
		{"delivered", true, nil},
		{"stored", false, []string{"failure ready too early early sites.example.com/web status.conditions[type=Ready].status"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.store("user", sites, "site", owner(1, `{}`))
			s.write("create", deployments, "deployment", deployment(1, `{}`))
			ready := s.store("kube-controller-manager", deployments, "deployment", deployment(1, `{"observedGeneration":1,"readyReplicas":1}`))
			if c.isDelivered {
				s.deliver(ready)
			}
			s.after(2*time.Second).write("patch", sites, "site", owner(1, isReady(1)))
			s.require(t, c.want...)
		})
	}
}

// A write counts if the server has stored a change.
func TestApplyWithoutChangeIsNoWrite(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.store("user", sites, "site", owner(1, `{}`))
	v := s.write("patch", sites, "site", owner(1, `{"checks":1}`))
	for range 3 {
		began := s.after(10 * time.Second).at
		s.request("patch", v, began, 200)
	}
	s.require(t)
}

// The server answers a request that removes the last finalizer with the version that the user's deletion has made. An
// exploration of an operator of controller-runtime found this.
func TestDeletionByTheUserIsNoWriteOfTheProgram(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.store("user", sites, "site", owner(1, `{}`))
	s.write("update", sites, "site", owner(1, `{"phase":"a"}`))
	deleting := s.after(10*time.Second).store("", sites, "site", `{"apiVersion":"example.com/v1","metadata":{"name":"web","deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"b"}}`)
	s.request("update", deleting, s.at, 200)
	noChange := s.after(10*time.Second).store("", sites, "site", owner(2, `{"phase":"c"}`))
	s.request("update", noChange, s.at, 200)
	s.require(t)
}

// The user deletes a Site. The program updates the Site without a change, and the server answers with the version of the
// deletion. So the event of the deletion counted as the echo of the program's own write, and what the program did then had no
// cause. An exploration of the Oathkeeper Maester found this.
func TestVersionInTheAnswerToNoChangeIsACause(t *testing.T) {
	t.Parallel()
	s := newScene()
	site := s.store("user", sites, "site", owner(1, `{}`))
	s.deliver(site)
	s.write("update", "configmaps", "page", page("a"))
	s.write("update", "configmaps", "page", page("b"))
	deleting := s.after(10*time.Second).store("", sites, "site", `{"apiVersion":"example.com/v1","metadata":{"name":"web","deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
	s.deliver(deleting)
	s.request("update", deleting, s.at, 200)
	s.write("update", "configmaps", "page", page("c"))
	s.require(t)
}

// The external system refuses a connection, and the program tries again later. An exploration of an operator of PostgreSQL
// took what the program wrote then for a change without a cause.
func TestFaultInTheExternalSystemIsACause(t *testing.T) {
	t.Parallel()
	scene := func(k faults.Kind) *scene {
		s := newScene()
		s.Faults = []faults.Fault{{Kind: k}}
		s.store("user", sites, "site", owner(1, `{}`))
		s.write("update", sites, "site", owner(1, `{"phase":"a"}`))
		s.after(10*time.Second).write("update", sites, "site", owner(1, `{"phase":"b"}`))
		return s
	}
	scene(faults.OutsideRefused).require(t)
	scene(faults.Crash).require(t, "warning at rest changed sites.example.com/web status.phase")
}

// Leases, Events and managedFields do not count.
func TestLeasesEventsAndManagedFieldsDoNotCount(t *testing.T) {
	t.Parallel()
	s := newScene()
	for i := range 4 {
		s.after(10*time.Second).write("update", proxy.Leases, "lease", fmt.Sprintf(`{"metadata":{"name":"leader"},"spec":{"term":%d}}`, i))
		s.write("patch", "events", "event", fmt.Sprintf(`{"metadata":{"name":"made"},"count":%d}`, i))
	}
	s.write("patch", "configmaps", "page", page("a"))
	s.after(10*time.Second).write("patch", "configmaps", "page", managed(`{"metadata":{"name":"page",`+ownedBy+`,%s},"data":{"text":"a"}}`, ownsData, `other={}`))
	s.require(t)
}

// A delivery, the answer to a read, a time that has come and a failure are causes. The delivery of the program's own write
// is none.
func TestCauses(t *testing.T) {
	t.Parallel()
	const violation = "warning at rest changed sites.example.com/web status.checks"
	for _, c := range []struct {
		name    string
		between func(s *scene, own history.Version)
		want    []string
	}{
		{"nothing", func(*scene, history.Version) {}, []string{violation}},
		{"the own write is delivered", func(s *scene, own history.Version) { s.deliver(own) }, []string{violation}},
		{"a change is delivered", func(s *scene, _ history.Version) {
			s.deliver(s.store("user", "configmaps", "settings", `{"metadata":{"name":"settings"}}`))
		}, nil},
		{"a change is read", func(s *scene, _ history.Version) { s.read(7) }, nil},
		{"a change is delivered, with whose version a write without a change was answered", func(s *scene, _ history.Version) {
			users := s.store("user", sites, "site", owner(2, `{"checks":1}`))
			s.after(time.Millisecond).request("patch", users, s.at, 200)
			s.deliver(users)
		}, nil},
		{"a request fails", func(s *scene, own history.Version) { s.request("patch", own, s.at, 409) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.store("user", sites, "site", owner(1, `{}`))
			own := s.write("patch", sites, "site", owner(1, `{"checks":1}`))
			s.after(time.Second)
			c.between(s, own)
			s.after(9*time.Second).write("patch", sites, "site", owner(1, `{"checks":2}`))
			s.require(t, c.want...)
		})
	}
	t.Run("a time comes", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		next := s.at.Add(10 * time.Second).UTC().Format(time.RFC3339)
		s.store("user", sites, "site", owner(1, `{}`))
		s.write("patch", sites, "site", owner(1, `{"runs":1,"next":"`+next+`"}`))
		s.after(12*time.Second).write("patch", sites, "site", owner(1, `{"runs":2,"next":"`+next+`"}`))
		s.require(t)
	})
	t.Run("a read with the same answer", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		s.read(7)
		s.write("patch", sites, "site", owner(1, `{"checks":1}`))
		s.after(time.Second).read(7)
		s.after(9*time.Second).write("patch", sites, "site", owner(1, `{"checks":2}`))
		s.require(t, violation)
	})
}

// A change of times alone is a note, such as a heartbeat.
func TestChangeOfTimesAloneIsANote(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.store("user", sites, "site", owner(1, `{}`))
	for range 3 {
		s.after(10*time.Second).write("patch", sites, "site", owner(1, `{"lastHeartbeatTime":"`+s.at.UTC().Format(time.RFC3339)+`"}`))
	}
	s.require(t, "note at rest changed sites.example.com/web")
}

// A reconcile on a busy machine, or with a slow server, takes more than a second. Its last write follows from what its first write
// followed from. A program that makes both writes again and again has no cause.
func TestWritesOfASlowReactionHaveACause(t *testing.T) {
	t.Parallel()
	react := func(s *scene, checks int) {
		s.write("patch", sites, "site", owner(1, fmt.Sprintf(`{"former":[{"name":"main"}],"checks":%d}`, checks)))
		began := s.at.Add(300 * time.Millisecond)
		v := s.after(900*time.Millisecond).store("program", "configmaps", "page", page(fmt.Sprint(checks)))
		s.request("patch", v, began, 200)
		s.after(600*time.Millisecond).write("patch", sites, "site", owner(1, fmt.Sprintf(`{"checks":%d}`, checks)))
	}
	s := newScene()
	s.store("user", sites, "site", owner(1, `{}`))
	react(s, 1)
	s.require(t)
	react(s.after(10*time.Second), 2)
	s.require(t, "warning at rest changed sites.example.com/web status.checks,status.former[name=main].name")
}

// Writes that follow one another at once belong together: the program has received its own write.
func TestWritesOfOneReactionHaveACause(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.store("user", sites, "site", owner(1, `{}`))
	for _, phase := range []string{"Creating", "Starting", "Running"} {
		s.deliver(s.write("patch", sites, "site", owner(1, `{"phase":"`+phase+`"}`)))
	}
	s.require(t)
}

// An accept entry may name a rule. It accepts nothing else.
func TestAcceptanceNamesARule(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]int{"": 0, "gone": 0, "remade": 1} {
		s := leftPage("program")
		entry := finding.Acceptance{Objects: "configmaps/*", Path: "*", Rule: rule, Reason: "It is kept."}
		if got := s.judge(entry); len(got) != want {
			t.Errorf("with an entry for the rule %q the violations are %q, want %d", rule, got, want)
		}
	}
}

// Findings of the same rule, kind, field paths and direction are one.
func TestKeyOfViolations(t *testing.T) {
	t.Parallel()
	first := rules.Violation{Rule: "gone", Object: faults.Object{Resource: "configmaps", Name: "a"}, Effect: "left"}
	other := first
	if other.Object.Name = "b"; other.Key() != first.Key() {
		t.Error("objects of one kind have two findings")
	}
	for _, change := range []func(v *rules.Violation){
		func(v *rules.Violation) { v.Rule = "remade" },
		func(v *rules.Violation) { v.Object.Resource = "secrets" },
		func(v *rules.Violation) { v.Paths = []string{"data.a"} },
		func(v *rules.Violation) { v.Effect = "remade" },
	} {
		other := first
		if change(&other); other.Key() == first.Key() {
			t.Errorf("%+v and %+v have one finding", first, other)
		}
	}
}

// leftPage returns a run in which the user deletes the only sample, and a page is left that a manager has made.
func leftPage(manager string) *scene {
	s := newScene()
	s.Steps = []rules.Step{{Applied: []rules.Sample{site}}, {Deleted: []faults.Object{site.Object}}}
	s.OwnObjects = map[faults.Object]bool{}
	v := s.store("user", sites, "site", owner(1, `{}`))
	s.store(manager, "configmaps", "page", page("a"))
	s.rest()
	s.remove(v, false)
	s.rest()
	return s
}

// site is the sample of the tests.
var site = rules.Sample{Object: faults.Object{Resource: sites, Name: "web"}, Content: map[string]any{}}

func TestGone(t *testing.T) {
	t.Parallel()
	const left = "failure gone left configmaps/page"
	t.Run("what the program made is left", func(t *testing.T) {
		t.Parallel()
		leftPage("program").require(t, left)
	})
	t.Run("what the user and the control plane made may stay", func(t *testing.T) {
		t.Parallel()
		leftPage("user").require(t)
		leftPage("kube-controller-manager").require(t)
	})
	t.Run("what the program makes without a sample is its own", func(t *testing.T) {
		t.Parallel()
		s := leftPage("program")
		s.OwnObjects = map[faults.Object]bool{{Resource: "configmaps", Name: "page"}: true}
		s.require(t)
	})
	t.Run("nobody knows what the program makes without a sample", func(t *testing.T) {
		t.Parallel()
		s := leftPage("program")
		s.OwnObjects = nil
		s.require(t)
		if !rules.NeedsOwnObjects(&s.Run) {
			t.Error("the judgement does not need the program's own objects")
		}
	})
	t.Run("volumes, Leases and Events stay", func(t *testing.T) {
		t.Parallel()
		s := leftPage("user")
		s.step = 0
		for _, resource := range []string{"persistentvolumeclaims", proxy.Leases, "events"} {
			s.store("program", resource, resource, `{"metadata":{"name":"data"}}`)
		}
		s.States = nil
		s.rest()
		s.rest()
		s.require(t)
	})
	t.Run("faults are left to the comparison", func(t *testing.T) {
		t.Parallel()
		s := leftPage("program")
		s.Faults = []faults.Fault{{Kind: faults.Crash}}
		s.require(t)
	})
	t.Run("a sample that waits is named with its finalizer", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.Steps = []rules.Step{{Applied: []rules.Sample{site}}, {Deleted: []faults.Object{site.Object}}}
		s.OwnObjects = map[faults.Object]bool{}
		s.store("program", sites, "site", `{"apiVersion":"example.com/v1","metadata":{"name":"web","finalizers":["example.com/pages"],"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
		s.write("create", "configmaps", "page", page("a")) // it waits for its owner
		s.rest()
		s.rest()
		s.require(t, "failure gone left sites.example.com/web")
		s.requireEvidence(t, "waits for its finalizer example.com/pages. Its children configmaps/page still exist")
		// The user applied it with the finalizer.
		held := rules.Sample{Object: site.Object, Content: map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/pages"}}}}
		s.Steps[0].Applied = []rules.Sample{held}
		s.require(t)
		// An object that refers to the sample is deleted after it.
		referrer := rules.Sample{Object: faults.Object{Resource: sites, Name: "other"}, Content: map[string]any{"spec": map[string]any{"site": "web"}}}
		s.Steps[0].Applied = []rules.Sample{site, referrer}
		s.Steps[1].Deleted = []faults.Object{site.Object, referrer.Object}
		s.require(t, "note gone left sites.example.com/web")
		if got := rules.SortedForDeletion(s.Steps, s.Steps[1].Deleted); got[0] != referrer.Object {
			t.Errorf("the order of deletion is %v", got)
		}
	})
}

func TestRemade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		second       string
		isByProgram  bool
		isOwnerAlive bool
		fault        *faults.Fault
		want         []string
	}{
		{name: "the same content", second: page("a"), isByProgram: true, isOwnerAlive: true, want: []string{"failure remade remade configmaps/page"}},
		{name: "other content", second: page("b"), isByProgram: true, isOwnerAlive: true},
		{name: "somebody else deleted it", second: page("a"), isOwnerAlive: true},
		{name: "the owner was deleted", second: page("a"), isByProgram: true},
		{
			name: "a fault concerns it", second: page("a"), isByProgram: true, isOwnerAlive: true,
			fault: &faults.Fault{Kind: faults.ForeignDelete, Object: &faults.Object{Resource: "configmaps", Name: "page"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			o := s.store("user", sites, "site", owner(1, `{}`))
			v := s.write("create", "configmaps", "page", page("a"))
			if !c.isOwnerAlive {
				s.remove(o, false)
			}
			s.remove(v, c.isByProgram)
			s.write("create", "configmaps", "page2", c.second)
			if c.fault != nil {
				s.Faults = []faults.Fault{*c.fault}
			}
			s.require(t, c.want...)
		})
	}
	// An exploration of the right twin "ends when a reference has no key" found this: the page went with the key of its
	// Site, and came back with it.
	t.Run("the user changed the owner in between", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		v := s.write("create", "configmaps", "page", page("a"))
		s.store("user", sites, "site", owner(2, `{}`))
		s.remove(v, true)
		s.store("user", sites, "site", owner(3, `{}`))
		s.write("create", "configmaps", "page2", page("a"))
		s.require(t)
	})
	// An exploration of the right twin "deletes by name without a uid" found this: the program was away while the user went
	// back to the former name.
	t.Run("the program was behind", func(t *testing.T) {
		t.Parallel()
		for _, fault := range []faults.Fault{{Kind: faults.Crash, Restart: faults.RestartNextStep}, {Kind: faults.Stale}, {Kind: faults.WatchLag}} {
			s := newScene()
			s.Faults = []faults.Fault{fault}
			s.store("user", sites, "site", owner(1, `{}`))
			s.remove(s.write("create", "configmaps", "page", page("a")), true)
			s.write("create", "configmaps", "page2", page("a"))
			s.require(t)
			s.Faults = []faults.Fault{{Kind: faults.Crash}}
			s.require(t, "failure remade remade configmaps/page")
		}
	})
	// An exploration of the right twin "keeps a volume of another class" found this: a volume of the class went and came
	// with it, and its deletion took longer than the user.
	t.Run("the user changed the owner often", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		for _, step := range []rules.Step{{Applied: []rules.Sample{site, site, site}}, {Applied: []rules.Sample{site}, Deleted: []faults.Object{{Resource: "secrets", Name: "login"}}}} {
			s.Steps = []rules.Step{step}
			s.store("user", sites, "site", owner(3, `{}`))
			s.remove(s.write("create", "configmaps", "page", page("a")), true)
			s.write("create", "configmaps", "page2", page("a"))
			s.require(t)
		}
	})
	t.Run("Pods and finished Jobs", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		job := managed(`{"apiVersion":"batch/v1","metadata":{"name":"job",`+ownedBy+`,%s},"data":{"text":"a"},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`, ownsData)
		for _, resource := range []string{"pods", "jobs.batch"} {
			s.remove(s.write("create", resource, resource+"1", job), true)
			s.write("create", resource, resource+"2", job)
		}
		s.require(t)
	})
}

const deployments = "deployments.apps"

// deployment returns a child with one replica.
func deployment(generation int, status string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","generation":%d,%s},"spec":{"replicas":1},"status":%s}`, generation, ownedBy, status)
}

// isReady returns a status that is ready at a generation.
func isReady(generation int) string {
	return fmt.Sprintf(`{"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True","observedGeneration":%d}]}`, generation, generation)
}

func TestReadyTooEarly(t *testing.T) {
	t.Parallel()
	const early = "failure ready too early early sites.example.com/web status.conditions[type=Ready].status"
	ready := `{"observedGeneration":1,"readyReplicas":1}`
	t.Run("the answer to its own write was not ready", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		s.write("create", deployments, "deployment", deployment(1, `{}`))
		s.write("patch", sites, "site", owner(1, isReady(1)))
		s.require(t, early)
	})
	t.Run("of another generation", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(2, `{}`))
		s.write("create", deployments, "deployment", deployment(1, `{}`))
		s.write("patch", sites, "site", owner(2, isReady(1)))
		s.require(t)
	})
	t.Run("an update that the controller has not observed", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		s.deliver(s.store("kube-controller-manager", deployments, "deployment", deployment(1, ready)))
		s.store("user", sites, "site", owner(2, isReady(1)))
		s.after(5*time.Second).write("update", deployments, "deployment", deployment(2, ready))
		s.write("patch", sites, "site", owner(2, isReady(2)))
		s.require(t, early)
	})
	t.Run("a state that was delivered a moment ago may not be read yet", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		s.deliver(s.store("kube-controller-manager", deployments, "deployment", deployment(1, ready)))
		s.after(5 * time.Second).deliver(s.store("kube-controller-manager", deployments, "deployment", deployment(1, `{"observedGeneration":1}`)))
		s.write("patch", sites, "site", owner(1, isReady(1)))
		s.require(t)
		if s.after(2*time.Second).write("patch", sites, "site", owner(2, isReady(2))); len(s.judge()) != 1 {
			t.Errorf("2 s later the violations are %q", s.judge())
		}
	})
	t.Run("True, False and True in one generation", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.store("user", sites, "site", owner(1, `{}`))
		s.write("patch", sites, "site", owner(1, isReady(1)))
		s.write("patch", sites, "site", owner(1, `{"observedGeneration":1}`))
		s.write("patch", sites, "site", owner(1, isReady(1)))
		s.require(t, "note ready too early true twice sites.example.com/web status.conditions[type=Ready].status")
	})
	t.Run("observedGeneration goes back", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.write("patch", sites, "site", owner(2, `{"observedGeneration":2}`))
		s.write("patch", sites, "site", owner(2, `{"observedGeneration":1}`))
		s.require(t, "failure ready too early went back sites.example.com/web status.observedGeneration")
		s.Faults = []faults.Fault{{Kind: faults.Restored}}
		s.require(t)
	})
}

func TestWhatOthersPut(t *testing.T) {
	t.Parallel()
	put := func(extra, set string) string {
		return managed(`{"metadata":{"name":"page",`+ownedBy+`,`+extra+`%s},"data":{"text":"a"}}`, ownsData, faults.ForeignManager+`=`+set)
	}
	for _, c := range []struct{ name, extra, set, want string }{
		{"labels", `"labels":{"stranger":"true"},`, `{"f:metadata":{"f:labels":{"f:stranger":{}}}}`, "failure what others put removed configmaps/page metadata.labels.stranger"},
		{"finalizers", `"finalizers":["stranger"],`, `{"f:metadata":{"f:finalizers":{"v:\"stranger\"":{}}}}`, "failure what others put removed configmaps/page metadata.finalizers[stranger]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.Faults = []faults.Fault{{Kind: faults.StrangerMetadata}}
			s.write("create", "configmaps", "page", page("a"))
			s.store(faults.ForeignManager, "configmaps", "page", put(c.extra, c.set))
			s.write("update", "configmaps", "page", put(c.extra, c.set))
			s.require(t)
			s.write("update", "configmaps", "page", page("a"))
			s.require(t, c.want)
		})
	}
	t.Run("the evidence names the program", func(t *testing.T) { // it named the stranger, whose entry in managedFields had changed
		t.Parallel()
		s := newScene()
		s.Faults = []faults.Fault{{Kind: faults.StrangerMetadata}}
		s.write("create", "configmaps", "page", page("a"))
		s.store(faults.ForeignManager, "configmaps", "page", put(`"labels":{"stranger":"true"},`, `{"f:metadata":{"f:labels":{"f:stranger":{}}}}`))
		s.request("update", s.store(faults.ForeignManager, "configmaps", "page", page("a")), s.at.Add(-10*time.Millisecond), 200)
		s.require(t, "failure what others put removed configmaps/page metadata.labels.stranger")
		s.requireEvidence(t, "after the program had sent update configmaps page")
	})
	t.Run("the stranger removes its own", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.Faults = []faults.Fault{{Kind: faults.StrangerMetadata}}
		s.write("create", "configmaps", "page", page("a"))
		s.store(faults.ForeignManager, "configmaps", "page", put(`"labels":{"stranger":"true"},`, `{"f:metadata":{"f:labels":{"f:stranger":{}}}}`))
		s.store(faults.ForeignManager, "configmaps", "page", page("a"))
		s.write("update", "configmaps", "page", page("b"))
		s.require(t)
	})
}

func TestAnothers(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]faults.Object{"other": {Resource: sites, Name: "other"}, "own": site.Object} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.Faults = []faults.Fault{{Kind: faults.Clones}}
			other := rules.Sample{Object: faults.Object{Resource: sites, Name: "other"}, Content: map[string]any{}}
			s.Steps = []rules.Step{{Applied: []rules.Sample{site, other}}, {Deleted: []faults.Object{deleted}}}
			s.store("user", sites, "site", owner(1, `{}`))
			v := s.write("create", "configmaps", "page", page("a"))
			s.rest()
			s.remove(v, true)
			s.rest()
			if name == "own" {
				s.require(t)
			} else {
				s.require(t, "failure another's deleted configmaps/page")
			}
		})
	}
}

// The values of children are judged for a second sample that the user gives.
func TestChangeOfAnothersChild(t *testing.T) {
	t.Parallel()
	other := rules.Sample{Object: faults.Object{Resource: sites, Name: "other"}, Content: map[string]any{}}
	for _, c := range []struct {
		kind    faults.Kind
		applied rules.Sample
		want    []string
	}{
		{faults.Pair, other, []string{"failure another's changed configmaps/page data.text"}},
		{faults.Clones, other, nil},
		{faults.Pair, site, nil},
	} {
		s := newScene()
		s.Faults = []faults.Fault{{Kind: c.kind}}
		s.Steps = []rules.Step{{Applied: []rules.Sample{site}}, {Applied: []rules.Sample{c.applied}}}
		s.store("user", sites, "site", owner(1, `{}`))
		s.write("create", "configmaps", "page", page("a"))
		s.rest()
		s.write("patch", "configmaps", "page", page("b"))
		s.rest()
		s.require(t, c.want...)
		if len(c.want) > 0 {
			s.requireEvidence(t, `The program changed data.text from "a" to "b". In step 2 the user did nothing to sites.example.com/web`)
		}
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sizes [3]int
		want  []string
	}{
		{"goes on", [3]int{1, 26, 51}, []string{"failure growth grows sites.example.com/web status.history"}},
		{"coalesced changes", [3]int{1, 12, 22}, []string{"failure growth grows sites.example.com/web status.history"}},
		{"is bounded", [3]int{1, 10, 10}, nil},
		{"is bounded late", [3]int{1, 26, 30}, nil},
		{"is less", [3]int{5, 4, 4}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.Faults = []faults.Fault{{Kind: faults.ManyChanges}}
			for _, size := range c.sizes {
				s.store("user", sites, "site", owner(s.step+1, `{"history":[`+list(size)+`]}`))
				s.rest()
			}
			s.require(t, c.want...)
		})
	}
}

// list returns the items of a list of numbers.
func list(size int) (text string) {
	for i := range size {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(i)
	}
	return text
}

// Another order of the environment rolls all Pods.
func TestOrder(t *testing.T) {
	t.Parallel()
	workload := func(managers []string, names ...string) string {
		env := ""
		for i, name := range names {
			if i > 0 {
				env += ","
			}
			env += `{"name":"` + name + `"}`
		}
		return managed(`{"apiVersion":"apps/v1","metadata":{"name":"web",`+ownedBy+`,%s},"spec":{"replicas":0,"template":{"spec":{"containers":[{"name":"web","env":[`+env+`]}]}}}}`, managers...)
	}
	const at = "at rest reordered deployments.apps/web spec.template.spec.containers[name=web].env"
	alone := []string{`program={"f:spec":{}}`}
	run := func(managers []string, lists [2]string) *scene {
		s := newScene()
		specs := func(list string) string {
			return `{"apiVersion":"example.com/v1","metadata":{"name":"web"},"spec":{"env":[` + list + `]}}`
		}
		s.store("user", sites, "site", specs(lists[0]))
		s.write("create", deployments, "deployment", workload(managers, "a", "b"))
		s.store("user", sites, "site", specs(lists[1]))
		s.write("update", deployments, "deployment", workload(managers, "b", "a"))
		return s
	}
	s := run(alone, [2]string{`1,2`, `1,2`})
	s.require(t, "warning "+at)
	s.write("update", deployments, "deployment", workload(alone, "a", "b"))
	s.require(t, "warning "+at, "failure "+at)
	run(alone, [2]string{`1,2`, `2,1`}).require(t)
	run([]string{alone[0], `other={"f:spec":{}}`}, [2]string{`1,2`, `1,2`}).require(t)
}
