// Command typical runs an operator of two kinds: Databases in a service outside of the cluster, and Users that wait for one.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/docs/guide/code/typical/service"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type DatabaseSpec struct {
	Secret string `json:"secret" crd:"minLength=1"`
}
type UserSpec struct {
	Database string `json:"database" crd:"minLength=1"`
}
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
type Database = kube.CustomResource[DatabaseSpec, Status]
type User = kube.CustomResource[UserSpec, Status]

func (DatabaseSpec) Definition() kube.Definition { return definition("Database") }
func (UserSpec) Definition() kube.Definition     { return definition("User") }
func definition(kind string) kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: kind}
}

func main() { operator.Main(reconciler{service.Client{URL: os.Getenv("SERVICE_URL")}}.parts()...) }

type reconciler struct{ service service.Client }

func (r reconciler) parts() []operator.Part {
	bySecret := kube.NewIndex("secret", func(d *Database) []string { return []string{d.Spec.Secret} })
	byDatabase := kube.NewIndex("database", func(u *User) []string { return []string{u.Spec.Database} })
	return []operator.Part{
		controller.New(r.database, controller.WatchesReferenced[corev1.Secret](bySecret)).Finalizer("example.com/remove", r.remove),
		controller.New(r.user, controller.WatchesReferenced[Database](byDatabase)),
	}
}

func (r reconciler) database(ctx context.Context, d *Database, c *kube.Client) (controller.Action, error) {
	secret, err := kube.Get[corev1.Secret](ctx, c, d.Namespace, d.Spec.Secret)
	if err == nil {
		err = r.service.Ensure(ctx, string(secret.Data["password"]), string(d.UID)) // the uid is the same after a crash
	}
	return controller.Done(), errors.Join(report(ctx, c, d, &d.Status, err), kube.IgnoreNotFound(err))
}

func (r reconciler) remove(ctx context.Context, d *Database, c *kube.Client) (controller.Cleanup, error) {
	secret, err := kube.Get[corev1.Secret](ctx, c, d.Namespace, d.Spec.Secret)
	if err == nil {
		err = r.service.Remove(ctx, string(secret.Data["password"]), string(d.UID))
	}
	return controller.CleanupDone(), err
}

func (r reconciler) user(ctx context.Context, u *User, c *kube.Client) (controller.Action, error) {
	d, err := kube.Get[Database](ctx, c, u.Namespace, u.Spec.Database)
	if err == nil && !meta.IsStatusConditionTrue(d.Status.Conditions, "Ready") {
		return controller.Done(), report(ctx, c, u, &u.Status, errors.New("its Database is not ready"))
	}
	return controller.Done(), errors.Join(report(ctx, c, u, &u.Status, err), kube.IgnoreNotFound(err))
}

func report(ctx context.Context, c *kube.Client, o kube.Object, s *Status, err error) error {
	reason, message := "Exists", "it exists in the service"
	if err != nil {
		reason, message = "Failed", err.Error()
	}
	kube.SetCondition(ctx, &s.Conditions, o, "Ready", err == nil, reason, message)
	return c.ApplyStatus(ctx, o)
}
