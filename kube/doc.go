// Package kube defines Kubernetes objects as Go types, and sends requests to API servers. An object is a
// [CustomResource], a type of k8s.io/api, a type of another module that a wrapper gives a [Definition], or an
// unstructured.Unstructured or metav1.PartialObjectMetadata.
//
// A call that returns an object is a function of this package, a call that returns only an error is a method of the
// [Client], and an [API] has all calls of one kind by the names of objects.
//
//	secret, err := kube.Get[corev1.Secret](ctx, client, "default", "db")
//	pods, err := kube.List[corev1.Pod](ctx, client, "default", kube.Label("app", "web"))
//	live, err := kube.Apply(ctx, client, kube.OwnedBy(app, deployment)) // kube.Create for what never changes
//	err := client.Delete(ctx, job)                                      // and client.ApplyStatus(ctx, app)
//	pods := kube.Namespaced[corev1.Pod](client, "default")              // pods.Modify, pods.Watch, pods.Logs, …
package kube
