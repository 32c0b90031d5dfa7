// Package kube defines Kubernetes objects as Go types, and sends requests to API servers. Nothing is registered and
// nothing is generated. An object is a Go struct with the metadata of Kubernetes: a [CustomResource], which carries its
// own [Definition]; a type of k8s.io/api; a type of another module, wrapped and given a Definition;
// unstructured.Unstructured or metav1.PartialObjectMetadata.
//
// A call that returns an object is a function of this package, a call that returns only an error is a method of the
// [Client], and an [API] has all calls of one kind by the names of objects. A function names a type only where no
// argument has it.
//
//	secret, err := kube.Get[corev1.Secret](ctx, client, "default", "db")
//	pods, err := kube.List[corev1.Pod](ctx, client, "default", kube.Label("app", "web"))
//	live, err := kube.Apply(ctx, client, kube.OwnedBy(app, deployment)) // for children: declares fields
//	job, err := kube.Create(ctx, client, job) // for objects that never change
//	err := client.Delete(ctx, job)
//	err := client.ApplyStatus(ctx, app)
//	pods := kube.Namespaced[corev1.Pod](client, "default") // pods.List, pods.Patch, pods.Watch, pods.Logs, …
//
// [API.PatchDifference] changes some fields of an object that was read. [API.Modify] suits a change that depends on the
// content of the object: it repeats the change after a conflict. [CreateSubresource] evicts and binds Pods.
//
// A client in a reconcile reads from a cache what the sources of the controller cover. [Client.Live] asks the server.
// A layer between a program and the server wraps the wire.Handler of the client: see [Client.With].
package kube
