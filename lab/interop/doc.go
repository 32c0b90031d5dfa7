// Package interop has no content but tests: a type of yare is used with the client and the cache of
// controller-runtime, and replicas with an elector of client-go share a lease with those of yare. The types that five
// other projects publish are applied. It is a module of its own, because nobody who imports yare may inherit
// controller-runtime.
package interop
