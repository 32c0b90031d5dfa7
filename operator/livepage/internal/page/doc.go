// Package page serves a page that shows what the controllers of a program do and why: the last reconciles with their
// causes and writes, the story of one object, and the state of the program. Package live has nothing to do with the
// page: it reads objects for the commands manifests and uninstall.
//
// A [Recorder] observes the controllers. It keeps a bounded history: some thousand reconciles, in at most one megabyte.
// A [Page] serves the history over HTTP, and sends what is new as server-sent events. Nothing is written for a reader
// who is not there, and no reader can make a reconcile wait: a slow reader misses events, and the page says how many.
//
// The contents of Secrets and of tokens are neither kept nor compared. A write of them is shown as "changed".
//
// The package writes HTML by itself: see markup. The packages text/template and html/template look methods up by names
// that are known at run time, so that the linker keeps all methods of all types. They would make an operator 6 MB
// larger: see docs/binary.md.
package page
