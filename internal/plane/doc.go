// Package plane finds, builds, keeps, starts and controls the embedded control plane: one
// binary, built from the module github.com/yare-go/yare/controlplane, that holds etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, a simulated kubelet and kubectl.
//
// The binary is not part of this module, so that nobody who imports yare inherits
// k8s.io/kubernetes. A [Finder] builds it once with the user's own go command and keeps it
// in the user's cache folder; [Start] runs it and speaks with it over its standard input
// and output. A Finder does the same for each other [Module] that is a module of its own.
package plane
