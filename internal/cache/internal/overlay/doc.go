// Package overlay remembers what the writes of a program were answered with, until its streams have observed
// it. A read that takes the newer of a store and the overlay never waits. The read is at least as new as
// every write answered before the read began.
//
// The package is a state machine. It makes no requests and knows no stores: its caller records
// when a request began, what an answer means (an [Entry]) and what a store shows (an
// [Observation]), and the overlay decides what to read.
//
// # Example
//
// The store of a stream is at version 10, and shows no object a.
//
//	create a      is answered at version 12   the entry of a is a value at 12
//	read a        the store is at 10          the content of the value is read
//	delete a      is answered with a at 13    the entry of a is a tombstone about the object at 13
//	watch         shows a at 12               a read finds no object: the tombstone is about a
//	watch         shows the deletion at 13    the store has reached 13, and the entry is dropped
//
// If the answer to the deletion is lost, the entry is an unknown state. Then one read goes to the server. The read
// finds nothing, and the entry is a tombstone.
//
// # Entries
//
// There is at most one entry for an object. It is one of
//
//	value          the object is at least as new as this content
//	tombstone      all objects that are known to have had the name are gone
//	unknown state  only the server knows the state
//
// An answer leads to an entry of its object:
//
//	the write succeeded and was answered with the object     value
//	… and the answer means that nothing is left of it         tombstone
//	… and the answer is no object, or has no version          unknown state
//	it is not known whether the write has happened            unknown state
//	the refusal does not fit what reads show                  unknown state
//	a read for an unknown state was answered                  value or tombstone
//
// If a caller knows by other means that an object may be gone, the caller records this too.
//
// # Two answers
//
// If the request of the new answer began after the old answer was recorded, the new one
// counts. Otherwise they overlapped, and either may be the later one:
//
//	value, value            the newer version
//	value, tombstone        the tombstone, if it is about the object of the value
//	…                       the one with the newer version, if both are known
//	…                       otherwise an unknown state
//	tombstone, tombstone    a tombstone about the objects of both
//	unknown state, any      an unknown state
//
// # Reads
//
// An entry counts for a store until the store has observed the entry. A store has observed an entry in each of these
// cases:
//
//   - The store, or the object in the store, has reached the version of the entry.
//   - The entry is a tombstone. The store has passed the last version of all objects that the tombstone is about, and
//     shows none of them. A store with a selector must show another object under the name.
//   - The entry has no version. Since the entry was recorded, the watch of the store has been open for longer than
//     [MaxSilence].
//
// While an entry counts, a read finds
//
//	value        the content of the entry, if it has the representation that is asked for
//	tombstone    no object, if the store shows none, one that the tombstone is about, or another one that is older; and
//	             another object that is newer
//	otherwise    that the state is uncertain: the caller reads it live, once
//
// After [MaxAge], a value is uncertain. So is a tombstone while the store shows an object. A stream shows a write
// within moments. If it has not done so, versions may have moved backwards, as after the restoration of a backup.
//
// # Collections
//
// The deletion of a collection changes unknown objects of a [Collection], and so does a create with an unknown name and
// no answer. The overlay keeps a [CollectionEffect]. Reads of the collection go to the server, until the store has
// reached a version after the effect. The version of a list that began later is after the effect, and so is the version
// of an object from a later create. From this version on, a store has also observed the unknown states and the
// tombstones without a version.
package overlay
