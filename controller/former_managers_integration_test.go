package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// house is a Deployment as a program of another library updates it as "manager": with an owner reference to a Garden,
// and with labels, an annotation and a finalizer.
func house(g *Garden) *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.Namespace, Name: g.Name,
		Labels:      map[string]string{"app": "a", "team": "green", "garden.example.com/former": "yes"},
		Annotations: map[string]string{"note": "by hand"},
		Finalizers:  []string{"example.com/hold"},
	}}
	d.Spec.Replicas, d.Spec.MinReadySeconds = new(int32(3)), 7
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "main", Image: "example.com/i", Env: []corev1.EnvVar{{Name: "FORMER", Value: "1"}}},
	}
	return kube.OwnedBy(g, d)
}

// bareHouse is what the controller applies.
func bareHouse(g *Garden) *appsv1.Deployment {
	d := house(g)
	d.Labels, d.Annotations, d.Finalizers = map[string]string{"app": "a"}, nil, nil
	d.Spec.Replicas, d.Spec.MinReadySeconds = nil, 0
	d.Spec.Template.Spec.Containers[0].Env = nil
	return d
}

// The fields that a program of another library has set by updates move to the field manager of the controller, so that
// its apply removes them: fields of the child stayed for ever. What belongs to others stays.
func TestFieldsOfFormerManagersMove(t *testing.T) {
	t.Parallel()
	c, garden := onServer(t)
	former := c.WithFieldManager("manager")
	owner := create(t, former, garden("eden"))
	owner.Status.Size = 5
	owner, err := kube.Namespaced[Garden](former, owner.Namespace).Status().Replace(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	before := create(t, former, house(owner))
	p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		if _, err := kube.Apply(ctx, c, bareHouse(g)); err != nil {
			return controller.Done(), err
		}
		g.Status.Size = 0
		return controller.Done(), c.ApplyStatus(ctx, g)
	}, controller.FieldManager("us"), controller.FormerFieldManagers("manager"), controller.FormerMetadata("garden.example.com/"),
		controller.Owns[appsv1.Deployment]()))

	var after *appsv1.Deployment
	yaretest.Eventually(t, func() error {
		after, err = kube.Get[appsv1.Deployment](t.Context(), c, owner.Namespace, owner.Name)
		if err != nil {
			return err
		}
		g, err := kube.Get[Garden](t.Context(), c, owner.Namespace, owner.Name)
		switch {
		case err != nil:
			return err
		case g.Status.Size != 0:
			return fmt.Errorf("the status still has the size %d", g.Status.Size)
		case after.Spec.MinReadySeconds != 0, *after.Spec.Replicas != 1, len(after.Spec.Template.Spec.Containers[0].Env) > 0, after.Labels["garden.example.com/former"] != "":
			return fmt.Errorf("the Deployment still has former fields: %v %d %d %v", after.Labels, after.Spec.MinReadySeconds, *after.Spec.Replicas, after.Spec.Template.Spec.Containers[0].Env)
		}
		return nil
	})
	if after.UID != before.UID || after.Labels["team"] != "green" || after.Annotations["note"] != "by hand" || !slices.Contains(after.Finalizers, "example.com/hold") {
		t.Errorf("the labels, annotations and finalizers are %v %v %v", after.Labels, after.Annotations, after.Finalizers)
	}
	i := slices.IndexFunc(after.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "manager" })
	if i < 0 || strings.Contains(after.ManagedFields[i].FieldsV1.GetRawString(), "f:spec") {
		t.Errorf("the former field manager should own the metadata of others alone: %v", after.ManagedFields)
	}
	log := strings.Join(append(p.log.lines(slog.LevelInfo), p.log.lines(slog.LevelWarn)...), "")
	for _, part := range []string{"spec.replicas", "spec.minReadySeconds", `containers[{\"name\":\"main\"}].env`, "metadata.labels.garden.example.com/former", "removed=[status]"} {
		if !strings.Contains(log, part) {
			t.Errorf("the log does not name %s:\n%s", part, log)
		}
	}
	if n := strings.Count(log, "now belong to this controller"); n != 2 {
		t.Errorf("the log has %d lines about moves, want one for the Deployments and one for the status:\n%s", n, log)
	}
}

// A former field manager alone proves nothing about an object without an owner, so its fields do not move.
func TestFieldsOfFormerManagersStayInForeignObjects(t *testing.T) {
	n := onNursery(t, true, controller.FormerFieldManagers("manager"))
	theirs := n.child("eden")
	theirs.Data = map[string]string{"greeting": "mine"}
	theirs = create(t, n.client.WithFieldManager("manager"), theirs)
	create(t, n.client, n.garden("eden"))
	n.refused("eden")
	if now, err := n.get("eden"); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("somebody else's ConfigMap has changed: %v", err)
	}
}

// Applies of the earlier release of a renamed program are united with those of the new one.
func TestFieldsOfAFormerApplyMove(t *testing.T) {
	n := onNursery(t, true, controller.FormerFieldManagers("us-before"))
	g := n.garden("eden")
	g.Annotations = map[string]string{"child": "none-yet"}
	owner := create(t, n.client, g)
	child := n.child("eden")
	child.Data = map[string]string{"greeting": "good day", "former": "yes"}
	apply(t, n.client.WithFieldManager("us-before"), kube.OwnedBy(owner, child))
	gardens := kube.Namespaced[Garden](n.client, owner.Namespace)
	if _, err := gardens.Modify(t.Context(), "eden", func(g *Garden) error { delete(g.Annotations, "child"); return nil }); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		now, err := n.get("eden")
		switch {
		case err != nil:
			return err
		case now.Data["former"] != "" || now.Data["greeting"] != "hello":
			return fmt.Errorf("the data is %v", now.Data)
		case len(now.ManagedFields) != 1 || now.ManagedFields[0].Manager != "us":
			return fmt.Errorf("the field managers are %v", now.ManagedFields)
		}
		return nil
	})
}
