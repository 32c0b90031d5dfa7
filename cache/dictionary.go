package cache

// sample are contents that stand for what the store holds and for what it is about to: some
// of all objects, evenly, and the last that came.
func (s *Store) sample() [][]byte {
	var samples [][]byte
	add := func(e *entry) {
		if e == nil || e.size < smallest {
			return
		}
		if content, err := e.appendContent(nil); err == nil {
			samples = append(samples, content)
		}
	}
	for i := range samplesEach {
		if n := len(s.slots); n >= 2*samplesEach {
			add(s.slots[i*n/samplesEach])
		}
	}
	// The ring from its oldest on.
	c := &s.compressor
	for i := range c.recent {
		add(c.recent[(c.next+i)%len(c.recent)])
	}
	return samples
}

// makeDictionary makes a dictionary of samples: whole ones, as far as there is room, and
// not too much of any. zstd finds in it what it finds in what precedes: names of fields,
// and whatever else the objects have in common.
func makeDictionary(samples [][]byte) []byte {
	total := 0
	for _, s := range samples {
		total += min(len(s), dictionarySize/2)
	}
	// Evenly spaced ones, if they do not all fit.
	step := max(1, (total+dictionarySize-1)/dictionarySize)
	dictionary := make([]byte, 0, min(total, dictionarySize))
	for i := 0; i < len(samples); i += step {
		part := samples[i][:min(len(samples[i]), dictionarySize/2)]
		dictionary = append(dictionary, part[:min(len(part), dictionarySize-len(dictionary))]...)
	}
	return dictionary
}
