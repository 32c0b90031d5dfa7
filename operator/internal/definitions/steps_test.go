package definitions

import (
	"strings"
	"testing"
)

// rows are the definitions of the rows of [StepProblems].
func rows() map[string]Spec {
	of := func(versions ...Version) Spec { return Spec{Versions: versions} }
	return map[string]Spec{
		"A": of(Version{Name: "v1", Served: true, Storage: true}),
		"B": of(Version{Name: "v2", Served: true}, Version{Name: "v1", Served: true, Storage: true}),
		"C": of(Version{Name: "v2", Served: true, Storage: true}, Version{Name: "v1", Served: true}),
		"D": of(Version{Name: "v2", Served: true, Storage: true}, Version{Name: "v1"}),
		"E": of(Version{Name: "v2", Served: true, Storage: true}),
	}
}

// --check let an apply jump over a row: objects were stored in a version that the running program could not read, and users
// of a version lost it without a word before.
func TestSteps(t *testing.T) {
	t.Parallel()
	for way, test := range map[string]struct {
		stored string
		// want is a part of each problem, or empty.
		want []string
	}{
		"A B": {"v1", nil}, "B C": {"v1", nil}, "C D": {"v2", nil}, "D E": {"v2", nil},
		"E D": {"v2", nil}, "D C": {"v2", nil}, "C B": {"v1 v2", nil}, "A A": {"v1", nil}, "C C": {"v1 v2", nil},
		"B A":                 {"v1", []string{"run robots migrate --remove-version v2"}},
		"A C":                 {"v1", []string{"objects would be stored in v2, which the cluster does not serve yet"}},
		"A D":                 {"v1", []string{"objects would be stored in v2", "objects are stored in v1, which would not be served any more"}},
		"A E":                 {"v1", []string{"objects would be stored in v2", "objects may be stored in version v1"}},
		"B D":                 {"v1", []string{"objects are stored in v1, which would not be served any more"}},
		"B E":                 {"v1", []string{"objects may be stored in version v1"}},
		"C A":                 {"v1 v2", []string{"objects may be stored in version v2"}},
		"C D, before migrate": {"v1 v2", []string{"version v1 would not be served any more, and objects may be stored in it: run robots migrate first"}},
		"C E":                 {"v2", []string{"version v1 is served, and the program does not define it any more"}},
		"D E, before migrate": {"v1 v2", []string{"objects may be stored in version v1"}},
		"D B":                 {"v2", []string{"objects would be stored in v1, which the cluster does not serve yet"}},
		"E B":                 {"v2", []string{"objects would be stored in v1, which the cluster does not serve yet"}},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			got := StepProblems(rows()[way[:1]], rows()[way[2:3]], strings.Fields(test.stored), "robots migrate")
			if len(got) != len(test.want) {
				t.Fatalf("the problems are %q", got)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) || !strings.Contains(got[i], "v1") && !strings.Contains(got[i], "v2") {
					t.Errorf("problem %d is %q", i, got[i])
				}
			}
		})
	}
}
