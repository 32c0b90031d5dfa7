// Package plane finds, builds, keeps, starts and controls the embedded control plane: one
// binary, built from the module github.com/yare-go/yare/controlplane, that holds etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, a simulated kubelet and kubectl.
//
// The binary is not part of this module, so that nobody who imports yare inherits
// k8s.io/kubernetes. A [Finder] builds the binary once with the user's own go command, and keeps the
// binary in the user's cache folder. [Start] runs the binary, and exchanges lines with it over its
// standard input and output. A Finder also builds and keeps the program of each other [Module].
package plane
