package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/bench/internal/workload"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// waitUntilRight waits until all objects are right. It returns an error with the first wrong objects
// if that takes longer than limit, or if the program ends.
func waitUntilRight(ctx context.Context, client *kube.Client, program *program, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last []string
	for {
		problems, err := findProblems(ctx, client)
		if ended := program.ended(); ended != nil {
			return ended
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
func findProblems(ctx context.Context, client *kube.Client) ([]string, error) {
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
