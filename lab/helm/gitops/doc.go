// Package gitops tests how Flux, Argo CD and cli-utils install a program and remove it, by the libraries that these tools
// are made of. It is a module of its own, because Argo CD's engine needs Kubernetes itself, and another version of
// kubectl than Helm.
package gitops
