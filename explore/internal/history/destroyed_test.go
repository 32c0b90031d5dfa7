package history_test

import (
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
)

func TestDestroyed(t *testing.T) {
	t.Parallel()
	// The user creates an App in step 0, changes it in step 1, and deletes it in step 2. The operator
	// makes a Secret with a password that it chooses, and a claim for the data.
	begin := func(r *run, password string) *run {
		r.writeAs("user", "apps.example.com", "web", `{"spec":{}}`, "spec")
		r.write("secrets", "web", `{"data":{"password":"`+password+`"}}`, "data.password")
		r.write("pods", "web-x2x9k", `{"metadata":{"generateName":"web-"},"spec":{}}`, "spec")
		r.writeAs("kube-controller-manager", "persistentvolumeclaims", "data-web-0", `{"spec":{"accessModes":["ReadWriteOnce"]}}`, "spec.accessModes")
		return r.next()
	}
	end := func(r *run) *run {
		return r.next().delete("apps.example.com", "web").delete("secrets", "web").delete("pods", "web-x2x9k")
	}
	references := []history.History{
		end(begin(newRun(t, "run-1"), "YQ==")).History, end(begin(newRun(t, "run-22"), "Yg==")).History, end(begin(newRun(t, "run-333"), "Yw==")).History,
	}
	ownedBy := func(r *run, i int) string {
		return `{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"App","name":"o","uid":"` + string(r.Versions[i].UID) + `"}]}}`
	}
	for name, test := range map[string]struct {
		middle func(r *run)
		faults []faults.Fault
		accept finding.Acceptance
		want   []string
	}{
		"nothing": {middle: func(*run) {}},
		"the claim dies": {
			middle: func(r *run) { r.delete("persistentvolumeclaims", "data-web-0") },
			want:   []string{"persistentvolumeclaims/data-web-0 was deleted in step 2"},
		},
		"the Secret dies too early, and comes back": {
			middle: func(r *run) {
				r.delete("secrets", "web").write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			},
			want: []string{
				"secrets/web was deleted in step 2", "secrets/web was created again in step 2", "secrets/web was deleted in step 3",
			},
		},
		"a fault kills the Secret": {
			middle: func(r *run) {
				r.delete("secrets", "web").write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			},
			faults: []faults.Fault{{Kind: faults.ForeignDelete, Object: &faults.Object{Resource: "secrets", Name: "web"}}},
		},
		"the Secret dies after somebody has edited it": {
			middle: func(r *run) {
				r.delete("secrets", "web").write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			},
			faults: []faults.Fault{{Kind: faults.ForeignEdit, Object: &faults.Object{Resource: "secrets", Name: "web"}}},
			want: []string{
				"secrets/web was deleted in step 2", "secrets/web was created again in step 2", "secrets/web was deleted in step 3",
			},
		},
		"somebody changes the password, and the operator makes another one": {middle: func(r *run) {
			r.writeAs("user", "secrets", "web", `{"data":{"password":"eA=="}}`, "data.password")
			r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
		}},
		"somebody changes the password and back, and the operator makes another one": {
			middle: func(r *run) {
				r.writeAs("user", "secrets", "web", `{"data":{"password":"eA=="}}`, "data.password")
				r.write("secrets", "web", `{"data":{"password":"Yw=="}}`, "data.password")
				r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			},
			want: []string{"secrets/web data.password changed in step 2"},
		},
		"the password changes": {
			middle: func(r *run) { r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password") },
			want:   []string{`secrets/web data.password changed in step 2 from "<secret with the hash`},
		},
		"a fault changes the password, and the operator keeps the other one": {middle: func(r *run) {
			r.writeAs("user", "secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
		}},
		"a fault changes the password, which the operator wrote as stringData": {middle: func(r *run) {
			r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "stringData.password")
			r.Versions[len(r.Versions)-1].Manager = "user"
		}},
		"a fault changes the password, and the operator changes it twice": {
			middle: func(r *run) {
				r.writeAs("user", "secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
				r.write("secrets", "web", `{"data":{"password":"ZQ=="}}`, "data.password")
				r.write("secrets", "web", `{"data":{"password":"Zg=="}}`, "data.password")
			},
			want: []string{`secrets/web data.password changed in step 2 from "<secret with the hash`},
		},
		"the password changes, and is ignored": {
			middle: func(r *run) { r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password") },
			accept: finding.Acceptance{Objects: "secrets/web", Path: "data.password"},
		},
		"the password changes, which is accepted in runs with other faults": {
			middle: func(r *run) { r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password") },
			faults: []faults.Fault{{Kind: faults.Crash}},
			accept: finding.Acceptance{Path: "data.password", Faults: []faults.Kind{faults.Stale}},
			want:   []string{"secrets/web data.password changed in step 2"},
		},
		"the claim dies, which is accepted in runs with this fault": {
			middle: func(r *run) { r.delete("persistentvolumeclaims", "data-web-0") },
			faults: []faults.Fault{{Kind: faults.Crash}},
			accept: finding.Acceptance{Objects: "persistentvolumeclaims", Path: "*", Faults: []faults.Kind{faults.Stale, faults.Crash}},
		},
		"a second Pod with a generated name": {
			middle: func(r *run) { r.write("pods", "web-c4c4c", `{"metadata":{"generateName":"web-"},"spec":{}}`, "spec") },
			want:   []string{"pods/web-* was created again in step 2"},
		},
		"a Pod of a ReplicaSet": {middle: func(r *run) {
			r.writeAs("kube-controller-manager", "pods", "rs-c4c4c",
				`{"metadata":{"generateName":"rs-","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"u","controller":true}]}}`, "spec")
			r.delete("pods", "rs-c4c4c")
		}},
		"an object dies with its owner": {
			middle: func(r *run) {
				i := len(r.Versions)
				r.writeAs("user", "apps.example.com", "o", `{}`, "spec").write("configmaps", "c", ownedBy(r, i), "data")
				r.delete("apps.example.com", "o").delete("configmaps", "c")
				i = len(r.Versions)
				r.writeAs("user", "apps.example.com", "o", `{}`, "spec").write("configmaps", "c", ownedBy(r, i), "data")
			},
			want: []string{"apps.example.com/o was deleted in step 2", "apps.example.com/o was created again in step 2"},
		},
		"a finished Job vanishes": {middle: func(r *run) {
			r.write("jobs.batch", "j", `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, "spec").delete("jobs.batch", "j")
		}},
		"a finished Job vanishes, and runs again": {
			middle: func(r *run) {
				r.write("jobs.batch", "j", `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, "spec").delete("jobs.batch", "j")
				r.write("jobs.batch", "j", `{"spec":{}}`, "spec")
			},
			want: []string{"jobs.batch/j was created again"},
		},
		// The deletion of the owner after the second creation was taken for the cause of that creation.
		"a finished Job vanishes, runs again, and dies with its owner": {
			middle: func(r *run) {
				i := len(r.Versions)
				r.writeAs("user", "apps.example.com", "o", `{}`, "spec")
				r.write("jobs.batch", "j", `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, "spec").delete("jobs.batch", "j")
				r.write("jobs.batch", "j", ownedBy(r, i), "spec").delete("apps.example.com", "o").delete("jobs.batch", "j")
			},
			want: []string{"jobs.batch/j was created again", "apps.example.com/o was deleted in step 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := begin(newRun(t, "run-4444"), "Yw==")
			test.middle(got)
			options := history.Options{Users: []string{"user"}}
			if test.accept.Path != "" {
				options.Accepted = accept(t, test.accept)
			}
			expect(t, lines(history.Destroyed(references, end(got).History, options, test.faults...)), test.want...)
		})
	}
}

// accept returns the accepted differences. Their reason is that the test accepts them.
func accept(t *testing.T, acceptances ...finding.Acceptance) *history.Accepted {
	t.Helper()
	for i := range acceptances {
		acceptances[i].Reason = "it is the test"
	}
	accepted, err := history.NewAccepted(acceptances...)
	if err != nil {
		t.Fatal(err)
	}
	return accepted
}

// A death that follows from the end of an owner in the references excuses no death of another object of the same
// name. A death that follows from the end of an owner only in the run uses up no death of the references.
func TestDestroyedDistinguishesDeathsWithOwners(t *testing.T) {
	t.Parallel()
	create := func(r *run) {
		i := len(r.Versions)
		r.writeAs("user", "apps.example.com", "web", `{}`, "spec")
		r.write("configmaps", "page", `{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"App","name":"web","uid":"`+string(r.Versions[i].UID)+`"}]}}`, "data")
	}
	remove := func(r *run) { r.delete("apps.example.com", "web").delete("configmaps", "page") }
	orphaned := func(r *run) {
		r.delete("configmaps", "page").delete("apps.example.com", "web")
	}
	for name, test := range map[string]struct {
		reference, run func(r *run)
		want           []string
	}{
		"the page of a namesake dies": {
			reference: func(r *run) { create(r); remove(r.next()); create(r.next()) },
			run: func(r *run) {
				create(r)
				remove(r.next())
				create(r.next())
				r.delete("configmaps", "page").write("configmaps", "page", `{}`, "data")
			},
			want: []string{"configmaps/page was deleted in step 3", "configmaps/page was created again in step 3"},
		},
		"the page dies without its owner's death": {
			reference: func(r *run) { create(r); remove(r.next()) },
			run:       func(r *run) { create(r); orphaned(r.next()) },
		},
		"the page dies with its owner once more": {
			reference: func(r *run) { r.write("configmaps", "page", `{}`, "data").next().delete("configmaps", "page") },
			run: func(r *run) {
				create(r)
				remove(r)
				r.write("configmaps", "page", `{}`, "data").next().delete("configmaps", "page")
			},
			want: []string{"apps.example.com/web was deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var references []history.History
			for _, namespace := range []string{"run-1", "run-22"} {
				r := newRun(t, namespace)
				test.reference(r)
				references = append(references, r.History)
			}
			got := newRun(t, "run-333")
			test.run(got)
			expect(t, lines(history.Destroyed(references, got.History, history.Options{Users: []string{"user"}})), test.want...)
		})
	}
}

// An operator that replaces an object to change it also answers an edit of somebody else by a replacement. An
// exploration once took that for a destruction.
func TestReplacementOfAnEditedObjectIsNoDestruction(t *testing.T) {
	t.Parallel()
	page := faults.Object{Resource: "configmaps", Name: "page"}
	replace := func(r *run) { r.delete("configmaps", "page").write("configmaps", "page", `{}`, "data") }
	edit := faults.Fault{Kind: faults.ForeignEdit, Object: &page}
	for name, test := range map[string]struct {
		replacements int // before the step in which the references replace the page
		faults       []faults.Fault
		want         []string
	}{
		"once after an edit": {replacements: 1, faults: []faults.Fault{edit}},
		"twice after an edit": {
			replacements: 2, faults: []faults.Fault{edit},
			want: []string{"configmaps/page was deleted in step 1", "configmaps/page was deleted in step 2", "configmaps/page was created again in step 2"},
		},
		"without an edit": {
			replacements: 1,
			want:         []string{"configmaps/page was deleted in step 1", "configmaps/page was deleted in step 2", "configmaps/page was created again in step 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference, got := newRun(t, "run-1"), newRun(t, "run-22")
			for _, r := range []*run{reference, got} {
				r.write("configmaps", "page", `{}`, "data")
			}
			for range test.replacements {
				replace(got)
			}
			for _, r := range []*run{reference, got} {
				replace(r.next())
			}
			options := history.Options{Users: []string{"user"}}
			expect(t, lines(history.Destroyed([]history.History{reference.History}, got.History, options, test.faults...)), test.want...)
		})
	}
}

// A value that follows from the declared state may change within one object in a run, although the references make
// a new object for it. An exploration once took such a value for one that is chosen at random.
func TestValueOfTheDeclaredStateIsNotChosen(t *testing.T) {
	t.Parallel()
	write := func(r *run, page string) { r.write("configmaps", "web", `{"data":{"page":"`+page+`"}}`, "data.page") }
	var references []history.History
	for _, namespace := range []string{"run-1", "run-22", "run-333"} {
		r := newRun(t, namespace)
		write(r, "first")
		r.next().delete("configmaps", "web")
		write(r.next(), "second")
		references = append(references, r.History)
	}
	got := newRun(t, "run-4444")
	write(got, "first")
	write(got.next().next(), "second")
	expect(t, lines(history.Destroyed(references, got.History, history.Options{Users: []string{"user"}})))
}
