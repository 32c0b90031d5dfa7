package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestPromisesHaveTheirTests(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	promises, err := readPromises(fstest.MapFS{
		"docs/guarantees.md":      file("| | promise | tests |\n| 1 | It works. | `TestA`, `b.TestModel`; `TestReal` (server) |\n| 2 | All. | `TestA` |\n"),
		"a/a_test.go":             file("package a\nfunc TestA(t *testing.T) {}\nfunc TestModel(t *testing.T) {}\n"),
		"b/b_test.go":             file("package b\nfunc TestModel(t *testing.T) {}\n"),
		"b/b_integration_test.go": file("package b\nfunc TestReal(t *testing.T) {}\n"),
		"other/go.mod":            file("module other\n"),
		"other/other_test.go":     file("package other\nfunc TestA(t *testing.T) {}\n"),
		"internal/testkit/programmodel/program_test.go": file("package programmodel\nfunc TestProgram(t *testing.T) {}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		promise    int
		dir        string
		withServer bool
		want       []string
	}{
		{1, "b", true, []string{"b TestModel", "a TestA", "b TestReal"}},
		{1, "a", false, []string{"a TestA", "b TestModel"}},
		{2, "b", true, []string{"a TestA", "internal/testkit/programmodel TestProgram"}},
	} {
		var got []string
		for _, g := range inOrder(promises[c.promise], c.dir, c.withServer) {
			for _, test := range g.tests {
				got = append(got, g.dir+" "+test)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("promise %d is tested by %q, not %q", c.promise, got, c.want)
		}
	}
}

func TestMutationsAreSpread(t *testing.T) {
	t.Parallel()
	var got []int
	for _, m := range spread([]mutation{
		{number: 1, promise: 1}, {number: 2, promise: 1}, {number: 3, promise: 1}, {number: 4, promise: 2}, {number: 5, promise: 3}, {number: 6, promise: 3},
	}) {
		got = append(got, m.number)
	}
	if want := []int{1, 4, 5, 2, 6, 3}; !slices.Equal(got, want) {
		t.Errorf("the order is %d, not %d", got, want)
	}
}

func TestEachPromiseHasMutations(t *testing.T) {
	t.Parallel()
	all := allMutations()
	if len(all) != 100 {
		t.Errorf("there are %d mutations", len(all))
	}
	for i, m := range all {
		if m.number != i+1 {
			t.Errorf("the mutation with the number %d stands in the place of %d", m.number, i+1)
		}
	}
	for promise := 1; promise <= 23; promise++ {
		if !slices.ContainsFunc(all, func(m mutation) bool { return m.promise == promise }) {
			t.Errorf("promise %d has no mutation", promise)
		}
	}
}
