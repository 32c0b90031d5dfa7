package cache

// compressor decides how the contents of a store are written: as they are until enough of
// them is known, then against a dictionary made of some, and against another one when that
// fits no more. It is the writer's own.
type compressor struct {
	// off is true for what is never compressed.
	off bool
	// current is nil until there is a dictionary.
	current *coding
	// made counts the dictionaries.
	made uint64
	// plain is the length of the contents that came before there was one, in bytes, and
	// plainEntries their number.
	plain, plainEntries int
	// recent are the last entries, in a ring.
	recent [samplesEach]*entry
	next   int

	// sent and kept are the lengths of the contents in the current round, before and after,
	// in bytes; encoded is their number.
	sent, kept, encoded int
	// best is the best ratio of kept to sent that the current dictionary has had, or 0.
	best float64
	// patience is how many rounds must pass before another dictionary is tried.
	patience int
	// failures counts the tries in a row that led to nothing.
	failures int
	// grown is the number of objects at which another dictionary is tried whatever the
	// ratio is: the first objects of a list are often those of one namespace.
	grown int

	// cursor is the slot from which on to look for what is to be written anew, and todo how
	// many slots are to be looked at.
	cursor, todo int
}

const (
	// smallest is the length of the contents that are worth the trouble, in bytes.
	smallest = 256
	// dictionarySize is the largest, in bytes. Twice as much saves less than it costs.
	dictionarySize = 32 << 10
	// samplesEach is how many entries are looked at for a dictionary: so many of the last
	// ones, and so many of all.
	samplesEach = 32
	// round is how many contents are looked at together.
	round = 256
	// worse is the factor by which the ratio may rise.
	worse = 1.2
	// better is the factor by which another dictionary must save.
	better = 0.9
	// growth is the factor of objects after which the first dictionary is put to the test.
	growth = 8
)

// enough tells that a first dictionary can be made. Quiet is true when nothing else is
// expected soon.
func (c *compressor) enough(quiet bool) bool {
	switch {
	case c.plain >= 512<<10:
		return true
	case c.plainEntries >= 2*samplesEach:
		return c.plain >= dictionarySize
	default:
		return quiet && c.plain >= 2*dictionarySize
	}
}

// append appends content to dst, and says how it is written.
func (c *compressor) append(dst, content []byte) ([]byte, *coding) {
	if c.current != nil && len(content) >= smallest {
		before := len(dst)
		encoded, err := c.current.encode(dst, content)
		kept := len(encoded) - before
		if err == nil && kept < len(content)-len(content)/8 {
			c.sent, c.kept, c.encoded = c.sent+len(content), c.kept+kept, c.encoded+1
			return encoded, c.current
		}
		dst = encoded[:before]
	}
	return append(dst, content...), nil
}

// note takes in an entry that the store has just got.
func (c *compressor) note(e *entry) {
	if c.off || e.size < smallest {
		return
	}
	c.recent[c.next] = e
	c.next = (c.next + 1) % len(c.recent)
	if c.current == nil {
		c.plain += int(e.size)
		c.plainEntries++
	}
}

// due tells whether another dictionary should be tried.
func (c *compressor) due(objects int) bool {
	if objects >= c.grown {
		c.grown = growth * objects
		return true
	}
	if c.encoded < round {
		return false
	}
	ratio := float64(c.kept) / float64(c.sent)
	c.sent, c.kept, c.encoded = 0, 0, 0
	if c.best == 0 || ratio < c.best {
		c.best = ratio
	}
	if c.patience > 0 {
		c.patience--
		return false
	}
	return ratio > worse*c.best
}

// tend does what is due for the contents of the store: a dictionary, and a part of what it
// takes to write everything with it. It is called after every change, and then does little;
// quiet is true when the stream rests.
func (s *Store) tend(quiet bool) {
	c := &s.compressor
	switch {
	case c.off:
		return
	case c.current == nil:
		if c.enough(quiet) {
			s.adopt(newCoding(makeDictionary(s.sample())))
		}
	case c.due(s.table.used):
		s.tryAnother()
	}
	steps := 2
	if quiet || s.table.used <= 4*samplesEach {
		steps = 1024
	}
	for ; steps > 0 && c.todo > 0; c.todo-- {
		if s.rewrite(uint32(c.cursor)) {
			steps--
		}
		c.cursor++
	}
}

// adopt makes a coding the current one.
func (s *Store) adopt(new *coding) {
	c := &s.compressor
	c.current = new
	c.made++
	clear(c.recent[:]) // they may be as they were sent
	c.sent, c.kept, c.encoded, c.best = 0, 0, 0, 0
	c.failures = 0
	// What it costs to write everything anew is spread over as much that is new.
	c.patience = max(4, s.table.used/round)
	c.grown = max(c.grown, growth*s.table.used)
	c.cursor, c.todo = 0, len(s.slots)
}

// tryAnother makes another dictionary, and adopts it if it is clearly better.
func (s *Store) tryAnother() {
	c := &s.compressor
	// What a dictionary was made of, it fits by itself: the test is the other half.
	var half, rest [][]byte
	for i, sample := range s.sample() {
		if i%2 == 0 {
			half = append(half, sample)
		} else {
			rest = append(rest, sample)
		}
	}
	another := newCoding(makeDictionary(half))
	was, is := c.current.cost(rest), another.cost(rest)
	if float64(is) < better*float64(was) {
		s.adopt(another)
		return
	}
	c.failures++
	c.patience = 1 << min(c.failures, 10)
}

// rewrite writes the content in a slot with the current coding, if it is not, and says
// whether that was something to do.
func (s *Store) rewrite(slot uint32) bool {
	e := s.slots[slot]
	if e == nil || e.coding == s.compressor.current || e.size < smallest {
		return false
	}
	b := &s.builder
	content, err := e.appendContent(nil)
	if err != nil {
		s.report(err)
		return true
	}
	b.buffer = append(b.buffer[:0], e.data[:e.values]...)
	anew := *e
	b.buffer, anew.coding = s.compressor.append(b.buffer, content)
	anew.data = string(b.buffer)
	s.swap(slot, &anew)
	return true
}
