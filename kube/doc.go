// Package kube knows what a Kubernetes object is, and talks to the API server.
//
// An object is a Go struct with the metadata of Kubernetes: a [CustomResource], which
// carries its own [Definition]; a type of k8s.io/api, whose resource is known; a type of
// another module, wrapped and given a Definition; unstructured.Unstructured; or
// metav1.PartialObjectMetadata. Nothing is registered and nothing is generated.
//
// A [Client] is these types on top of a [Handler], which serves one [Request] at a time
// and knows bytes only. Over HTTP that is [NewClient]. Whatever stands between an
// operator and the server (a cache, a limit, a fault on purpose) wraps a Handler:
//
//	client = client.With(func(next kube.Handler) kube.Handler { … })
//
// Callers name one type parameter; that a pointer to it is an object is checked by the
// compiler:
//
//	pods, err := kube.Namespaced[corev1.Pod](client, "default").List(ctx, kube.Label("app", "web"))
//	live, err := kube.Apply(ctx, client, deployment)
package kube
