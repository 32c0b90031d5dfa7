// Package fakeserver implements a scripted API server as a [wire.Handler], for tests under
// testing/synctest. It runs no goroutine of its own, reads the time from package time only,
// and keeps objects of any kind in memory.
//
// The server decides as a real API server does wherever the difference can be seen by a
// client:
//
//   - Resource versions are global and increase with every write. A write that changes
//     nothing keeps the version.
//   - The server sets uid, creationTimestamp, generation (by changes outside of metadata and
//     status), deletionTimestamp and managedFields. An object with finalizers stays until the
//     last finalizer is removed.
//   - A server-side apply owns fields. It conflicts with the other owners of a field unless it
//     is forced, and removes the fields that its manager no longer applies.
//   - A write to the status subresource changes the status alone. Any other write changes everything
//     else. An apply of a status ignores metadata.uid.
//   - A watch with a selector reports an object that stops matching as DELETED, in its former
//     state and at the new version.
//   - A watch from a version replays the changes since. A watch from a version that the server has
//     not reached stays silent and skips every event up to this version. A watch from a compacted
//     version ends with 410.
//   - No bookmark is at or below the version that the watch was requested from.
//   - A page of a list has the version of the first page, and expires with its history.
//
// One test holds the same conversations with this server and with a real one, and compares all
// answers: parity_integration_test.go.
//
// The server does not convert between versions of a kind, validates no schema, and knows a few
// associative lists only (see schema). Two kinds of one server must not share a plural.
package fakeserver
