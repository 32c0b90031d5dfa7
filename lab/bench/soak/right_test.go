package soak

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// waitUntilRight waits until all objects are right. It returns an error with the first wrong objects
// if that takes longer than limit, or if the program ends.
func waitUntilRight(ctx context.Context, client *kube.Client, namespace string, program *program, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last []string
	for {
		problems, err := findProblems(ctx, client, namespace)
		if endErr := program.endError(); endErr != nil {
			return endErr
		}
		if err == nil && len(problems) == 0 {
			return nil
		}
		if err == nil {
			last = problems
		}
		if clock.SleepReal(ctx, 5*time.Second) == nil {
			continue
		}
		if last == nil {
			return err
		}
		shown := last[:min(len(last), 10)]
		return fmt.Errorf("%d objects were not right within %s:\n%s", len(last), limit, strings.Join(shown, "\n"))
	}
}

// findProblems returns the problems of Notes and ConfigMaps, one text for each object.
func findProblems(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	notes, err := kube.Namespaced[workload.Note](client, namespace).List(ctx)
	if err != nil {
		return nil, err
	}
	configMaps, err := kube.Namespaced[corev1.ConfigMap](client, namespace).List(ctx)
	if err != nil {
		return nil, err
	}
	children := make(map[types.UID][]*corev1.ConfigMap)
	for _, each := range configMaps {
		if owner := metav1.GetControllerOf(each); owner != nil {
			children[owner.UID] = append(children[owner.UID], each)
		}
	}
	var problems []string
	for _, note := range notes {
		if problem := problemOf(note, children[note.UID]); problem != "" {
			problems = append(problems, "note "+note.Name+": "+problem)
		}
		delete(children, note.UID)
	}
	for _, orphans := range children {
		problems = append(problems, "configmap "+orphans[0].Name+": its Note does not exist")
	}
	return problems, nil
}

// problemOf returns the problem of a Note that has these ConfigMaps, or an empty text.
func problemOf(note *workload.Note, children []*corev1.ConfigMap) string {
	switch {
	case note.DeletionTimestamp != nil:
		return "it is still being deleted"
	case note.Status.Text != note.Spec.Text:
		return "its status is not up to date"
	case len(children) != 1:
		return fmt.Sprintf("it has %d ConfigMaps", len(children))
	case children[0].Data["text"] != note.Spec.Text:
		return "its ConfigMap has another text"
	}
	return ""
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
