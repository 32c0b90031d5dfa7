package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/yare-go/yare/lab/bench/internal/probe"
)

// WebApp is a web application: a Deployment.
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebAppSpec   `json:"spec"`
	Status WebAppStatus `json:"status,omitempty"`
}

// WebAppSpec is the desired state of a WebApp.
type WebAppSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

// WebAppStatus is the observed state of a WebApp.
type WebAppStatus struct {
	AvailableReplicas int32              `json:"availableReplicas"`
	Ready             bool               `json:"ready"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

// WebAppList is a list of WebApps.
type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WebApp `json:"items"`
}

// DeepCopyInto copies a, as the code of a generator would.
func (a *WebApp) DeepCopyInto(to *WebApp) {
	*to = *a
	a.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	to.Status.Conditions = slices.Clone(a.Status.Conditions)
}

// DeepCopyObject makes a WebApp a runtime.Object.
func (a *WebApp) DeepCopyObject() runtime.Object {
	to := new(WebApp)
	a.DeepCopyInto(to)
	return to
}

// DeepCopyObject makes a WebAppList a runtime.Object.
func (l *WebAppList) DeepCopyObject() runtime.Object {
	to := &WebAppList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]WebApp, len(l.Items))}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&to.Items[i])
	}
	return to
}

const fieldOwner = client.FieldOwner("webapp-operator")

// webAppReconciler applies the Deployment and the status of each WebApp.
type webAppReconciler struct {
	client.Client
}

// setUp adds the controller. If it is tuned, changes of the status of a WebApp do not trigger it.
func (r *webAppReconciler) setUp(manager ctrl.Manager, tuned bool) error {
	var options []builder.ForOption
	if tuned {
		options = append(options, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	p := probe.FromEnv()
	counted := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		defer p.Reconciled(req.Name, "")
		return r.Reconcile(ctx, req)
	})
	return ctrl.NewControllerManagedBy(manager).For(&WebApp{}, options...).Owns(&appsv1.Deployment{}).Complete(counted)
}

// Reconcile applies the Deployment of a WebApp, and its status.
func (r *webAppReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app WebApp
	if err := r.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Apply stores the server's answer in live.
	live := deployment(&app)
	if err := r.Apply(ctx, live, fieldOwner, client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	setStatus(&app, live)
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&app.Status)
	if err != nil {
		return ctrl.Result{}, err
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	apply.SetGroupVersionKind(groupVersion.WithKind("WebApp"))
	apply.SetNamespace(app.Namespace)
	apply.SetName(app.Name)
	err = r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(apply), fieldOwner, client.ForceOwnership)
	return ctrl.Result{RequeueAfter: 5 * time.Minute}, err
}

// setStatus sets the status of app, whose Deployment is live.
func setStatus(app *WebApp, live *appsv1ac.DeploymentApplyConfiguration) {
	var replicas, updated, available int32
	observed := false
	if s := live.Status; s != nil {
		replicas, updated, available = value(s.Replicas), value(s.UpdatedReplicas), value(s.AvailableReplicas)
		observed = value(s.ObservedGeneration) == value(live.Generation)
	}
	want := app.Spec.Replicas
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: app.Generation,
		Message: fmt.Sprintf("%d of %d pods are updated, %d available", updated, want, available),
	}
	ready := observed && replicas == want && updated == want && available == want
	if ready {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Available"
	}
	app.Status.AvailableReplicas, app.Status.Ready = available, ready
	meta.SetStatusCondition(&app.Status.Conditions, condition)
}

// value returns the value that p points to, and zero if p is nil.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// deployment returns the desired Deployment of app.
func deployment(app *WebApp) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": app.Name}
	owner := metav1ac.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("WebApp").
		WithName(app.Name).WithUID(app.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	return appsv1ac.Deployment(app.Name, app.Namespace).
		WithLabels(labels).
		WithOwnerReferences(owner).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(app.Spec.Replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(corev1ac.PodSpec().
					WithContainers(corev1ac.Container().WithName("web").WithImage(app.Spec.Image)))))
}
