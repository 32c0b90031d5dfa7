package main

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/bench/internal/workload"
)

func TestMetricsAreSummedUp(t *testing.T) {
	t.Parallel()
	values, err := parseMetrics(strings.NewReader("# TYPE a gauge\na 1\nb{x=\"} \"} 2\nb{x=\"z\"} 3e1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]float64{"a": 1, "b": 32}; !maps.Equal(values, want) {
		t.Errorf("the metrics are %v, not %v", values, want)
	}
}

func TestGrowthIsNotFlat(t *testing.T) {
	t.Parallel()
	r := &results{}
	for i := range 90 {
		r.Samples = append(r.Samples, sample{Resident: 100 + float64(i), Heap: 100, Goroutines: 20 + float64(i/60), Sockets: 5})
	}
	r.judge()
	for _, each := range r.Trends {
		if want := each.Of != "resident memory"; each.Flat != want {
			t.Errorf("%s: flat is %t, not %t: %+v", each.Of, each.Flat, want, each)
		}
	}
	if r.err() == nil {
		t.Error("memory that grows is no error")
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	note := func(change func(*workload.Note)) *workload.Note {
		n := &workload.Note{Spec: workload.NoteSpec{Text: "new"}, Status: workload.NoteStatus{Text: "new"}}
		if change != nil {
			change(n)
		}
		return n
	}
	child := func(text string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: map[string]string{"text": text}} }
	for _, test := range []struct {
		note     *workload.Note
		children []*corev1.ConfigMap
		want     string
	}{
		{note(nil), []*corev1.ConfigMap{child("new")}, ""},
		{note(nil), nil, "it has 0 ConfigMaps"},
		{note(nil), []*corev1.ConfigMap{child("old")}, "its ConfigMap has another text"},
		{note(func(n *workload.Note) { n.Status.Text = "old" }), []*corev1.ConfigMap{child("new")}, "its status is not up to date"},
		{note(func(n *workload.Note) { n.DeletionTimestamp = &metav1.Time{} }), []*corev1.ConfigMap{child("new")}, "it is still being deleted"},
	} {
		if got := problemOf(test.note, test.children); got != test.want {
			t.Errorf("the problem is %q, not %q", got, test.want)
		}
	}
}
