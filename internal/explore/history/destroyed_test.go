package history_test

import (
	"testing"

	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
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
		killed []schedule.Object
		ignore string
		want   []string
	}{
		"nothing": {middle: func(*run) {}},
		"the claim dies": {
			middle: func(r *run) { r.delete("persistentvolumeclaims", "data-web-0") },
			want:   []string{"persistentvolumeclaims/data-web-0 died in step 2"},
		},
		"the Secret dies too early, and comes back": {
			middle: func(r *run) {
				r.delete("secrets", "web").write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			},
			want: []string{
				"secrets/web died in step 2", "secrets/web was created again in step 2", "secrets/web died in step 3",
			},
		},
		"a fault kills the Secret": {
			middle: func(r *run) {
				r.delete("secrets", "web").write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
			},
			killed: []schedule.Object{{Resource: "secrets", Name: "web"}},
		},
		"the password changes": {
			middle: func(r *run) { r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password") },
			want:   []string{`secrets/web: data.password changed in step 2 from "<secret with the hash`},
		},
		"a fault changes the password, and the operator keeps the other one": {
			middle: func(r *run) { r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password") },
			killed: []schedule.Object{{Resource: "secrets", Name: "web"}},
		},
		"a fault changes the password, and the operator changes it again": {
			middle: func(r *run) {
				r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password")
				r.write("secrets", "web", `{"data":{"password":"ZQ=="}}`, "data.password")
			},
			killed: []schedule.Object{{Resource: "secrets", Name: "web"}},
			want:   []string{`secrets/web: data.password changed in step 2 from "<secret with the hash`},
		},
		"the password changes, and is ignored": {
			middle: func(r *run) { r.write("secrets", "web", `{"data":{"password":"ZA=="}}`, "data.password") },
			ignore: "secrets/web data.password",
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
			want: []string{"apps.example.com/o died in step 2", "apps.example.com/o was created again in step 2"},
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := begin(newRun(t, "run-4444"), "Yw==")
			test.middle(got)
			options := history.Options{Users: []string{"user"}}
			if test.ignore != "" {
				options.Ignore = []history.Ignore{{Path: test.ignore, Reason: "it is the test"}}
			}
			expect(t, lines(history.Destroyed(references, end(got).History, options, test.killed...)), test.want...)
		})
	}
}
