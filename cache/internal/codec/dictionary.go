package codec

// MaxDictionarySize is the size of the largest dictionary, in bytes. Twice as much saves less
// than it costs.
const MaxDictionarySize = 32 << 10

// MakeDictionary makes a dictionary of samples: whole ones, as far as there is room, and not
// too much of any. zstd finds in it what it finds in the content before: names of fields, and
// whatever else the contents have in common.
func MakeDictionary(samples [][]byte) []byte {
	total := 0
	for _, s := range samples {
		total += min(len(s), MaxDictionarySize/2)
	}
	// Evenly spaced ones, if they do not all fit.
	step := max(1, (total+MaxDictionarySize-1)/MaxDictionarySize)
	dictionary := make([]byte, 0, min(total, MaxDictionarySize))
	for i := 0; i < len(samples); i += step {
		part := samples[i][:min(len(samples[i]), MaxDictionarySize/2)]
		dictionary = append(dictionary, part[:min(len(part), MaxDictionarySize-len(dictionary))]...)
	}
	return dictionary
}
