// Package kube defines Kubernetes objects as Go types, and sends requests to API servers.
//
// An object is a Go struct with the metadata of Kubernetes: a [CustomResource], which
// carries its own [Definition]; a type of k8s.io/api, whose resource is known; a type of
// another module, wrapped and given a Definition; unstructured.Unstructured; or
// metav1.PartialObjectMetadata. Nothing is registered and nothing is generated. A custom resource
// is an alias of CustomResource, or a defined type where it needs methods. For client-go and
// controller-runtime it is a runtime.Object: see [DeepCopy].
//
// A [Client] puts these types on top of a [wire.Handler], which serves requests and knows only
// bytes. [NewClient] returns a client over HTTP. A layer between an operator and the server
// (a cache, metrics, a fault on purpose) wraps a Handler:
//
//	client = client.With(func(next wire.Handler) wire.Handler { … })
//
// # Where a call lives
//
// A call that returns an object is a function of this package, a call that returns only an error is a method of the
// [Client], and an [API] has all calls of one kind by the names of objects.
//
//	secret, err := kube.Get[corev1.Secret](ctx, client, "default", "db")
//	pods, err := kube.List[corev1.Pod](ctx, client, "default", kube.Label("app", "web"))
//	live, err := kube.Apply(ctx, client, deployment)
//	job, err := kube.Create(ctx, client, job)
//	err := client.Delete(ctx, job)
//	err := client.ApplyStatus(ctx, app)
//	pods := kube.Namespaced[corev1.Pod](client, "default") // pods.List, pods.Patch, pods.Watch, pods.Logs, …
//
// The functions name a type only where no argument has it. Their arguments may be interfaces: see [Apply].
//
// # Which write
//
//   - [Apply] declares the fields that a program wants to have. The fields come from an object built for the
//     apply. [Apply] suits children, and statuses ([Client.ApplyStatus]).
//   - [API.PatchDifference] changes some fields of an object that was read, such as a label. It leaves
//     all other fields alone.
//   - [API.Modify] reads, changes and replaces an object, and repeats this after a conflict. It suits
//     a change that depends on the content of the object, such as a list or a counter.
//   - [API.Create] suits objects that are made once and never changed, such as Jobs.
//   - [CreateSubresource] evicts a Pod, binds a Pod, or asks for a token. Package kube/pods runs commands
//     in Pods.
//
// A reconcile reads from a cache what its sources cover. [Client.Live] asks the server.
package kube
