// Package helm tests the charts that the command manifests writes with the library of Helm. It is a
// module of its own, because nobody who imports yare may inherit Helm.
package helm
