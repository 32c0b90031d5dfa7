// Package follow follows one stream of objects: it lists them, watches them, and returns each change as raw bytes, in
// one ordered sequence that goes on whatever a server does. Package watch says what the sequence guarantees, also after
// the restoration of a server from a backup, and decodes it for authors. The cache and the leader election use the
// sequence itself.
//
// A stream probes for a restoration by itself: see package watch. The streams of a program find restorations together,
// and a [Relister] asks a stream for a fresh list or for a probe: see package internal/cache/internal/restoration.
package follow
