package store

import "github.com/yare-go/yare/cache/internal/codec"

// samplesEach is how many entries are looked at for a dictionary: so many of the last ones, and
// so many of all.
const samplesEach = 32

// recordRecent records an entry that was just put, as a sample for the next dictionary.
func (w *Writer) recordRecent(e *Entry) {
	if w.plain || e.size < codec.MinSize {
		return
	}
	w.recent[w.next] = e
	w.next = (w.next + 1) % len(w.recent)
	w.compressor.RecordContent(int(e.size))
}

// Maintain makes a dictionary if one is due, and writes some contents with it that were written
// otherwise. It is called after every change, and then does little; resting reports that no other
// change is expected soon.
func (w *Writer) Maintain(resting bool) {
	if w.plain {
		return
	}
	s := w.store
	if w.compressor.Train(s.table.Len(), resting, w.samples) {
		s.mu.Lock()
		s.stats.Dictionaries = w.compressor.Adopted()
		s.mu.Unlock()
		clear(w.recent[:]) // they may be written as they were sent
		w.cursor, w.rewrites = 0, len(s.slots)
	}
	steps := 2
	if resting || s.table.Len() <= 4*samplesEach {
		steps = 1024
	}
	for ; steps > 0 && w.rewrites > 0; w.rewrites-- {
		if w.rewrite(uint32(w.cursor)) {
			steps--
		}
		w.cursor++
	}
}

// samples returns contents that stand for what the store holds and for what comes next: some of all
// objects, evenly, and the last ones.
func (w *Writer) samples() [][]byte {
	var samples [][]byte
	add := func(e *Entry) {
		if e == nil || e.size < codec.MinSize {
			return
		}
		if content, err := e.appendContent(nil); err == nil {
			samples = append(samples, content)
		}
	}
	all := w.store.slots
	for i := range samplesEach {
		if n := len(all); n >= 2*samplesEach {
			add(all[i*n/samplesEach])
		}
	}
	// The ring, from its oldest entry on.
	for i := range w.recent {
		add(w.recent[(w.next+i)%len(w.recent)])
	}
	return samples
}

// rewrite writes the content in a slot with the current codec. It reports whether it was
// written with another one.
func (w *Writer) rewrite(slot uint32) (rewritten bool) {
	e := w.store.slots[slot]
	if e == nil || e.codec == w.compressor.Current() || e.size < codec.MinSize {
		return false
	}
	content, err := e.appendContent(nil)
	if err != nil {
		w.report(err)
		return true
	}
	b := &w.builder
	b.buffer = append(b.buffer[:0], e.data[:e.values]...)
	anew := *e
	b.buffer, anew.codec = w.append(b.buffer, content)
	anew.data = string(b.buffer)
	w.replace(slot, &anew)
	return true
}

// append appends content to dst, and returns the codec that it is written with, or nil.
func (w *Writer) append(dst, content []byte) ([]byte, *codec.Codec) {
	if w.plain {
		return append(dst, content...), nil
	}
	return w.compressor.Append(dst, content)
}
