// Package kube defines Kubernetes objects as Go types, and sends requests to API servers.
//
// An object is a Go struct with the metadata of Kubernetes: a [CustomResource], which
// carries its own [Definition]; a type of k8s.io/api, whose resource is known; a type of
// another module, wrapped and given a Definition; unstructured.Unstructured; or
// metav1.PartialObjectMetadata. Nothing is registered and nothing is generated.
//
// A [Client] puts these types on top of a [Handler], which serves requests and knows only
// bytes. [NewClient] returns a client over HTTP. What stands between an operator and the
// server (a cache, metrics, a fault on purpose) wraps a Handler:
//
//	client = client.With(func(next kube.Handler) kube.Handler { … })
//
// Callers name one type parameter. The compiler checks that a pointer to it is an object:
//
//	pods, err := kube.Namespaced[corev1.Pod](client, "default").List(ctx, kube.Label("app", "web"))
//	live, err := kube.Apply(ctx, client, deployment)
package kube
