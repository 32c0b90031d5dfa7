// Package controllergen compares package crd with controller-gen. The types of its packages have both
// the markers of kubebuilder and crd tags, and both must give the same definition. It is a module of
// its own, because nobody who imports yare may inherit controller-gen.
package controllergen
