// Package follow follows one stream of objects: it lists them, watches them, and returns each change as raw bytes, in
// one ordered sequence that goes on whatever a server does. Package watch says what the sequence guarantees, and decodes
// it for authors. The cache and the leader election use it as it is.
//
// # A restored server, and several streams
//
// One stream finds a restoration earlier than another one. Package cache then asks, through a
// [Relister], for fresh lists of all streams whose resource versions the same server assigns, whatever version they have
// reached. It takes this for granted of the kinds of Kubernetes and of the kinds that the program defines. Every
// foreign group may be served by an aggregated API server with resource versions of its own, so its streams are probed. A
// restoration that a stream of a foreign group finds leads to lists of that group, and to probes of all other
// streams. The lists and the probes begin within a minute. A store that waits for its list is not read. Package cache
// publishes the restoration to the subscribers of the streams that it concerns, whose controllers reconcile all their
// objects.
//
// Package cache finds restorations in two further ways. An answer to a request can contradict a store. A watch can pass a
// version that a request was answered with, without showing the object. The first contradiction of a stream is a
// proof of a restoration. The following ones lead to a list of the stream, first after a minute and then after twice
// the time, up to an hour.
package follow
