package codec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// text returns n bytes of words.
func text(seed uint64, n int) string {
	random := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, `"%s":"%x",`, [...]string{"name", "image", "replicas", "status", "reason"}[random.IntN(5)], random.Uint32()>>16)
	}
	return b.String()[:n]
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	c := New([]byte(text(1, 8000)))
	for name, content := range map[string]string{
		"alike": text(2, 1500), "one byte": "x", "empty": "", "noise": string(noise[:5000]), "large": string(noise),
		"repetitive": strings.Repeat(text(3, 900), 600), "zeros": strings.Repeat("\x00", 100_000),
		"just over a block": string(noise[:128<<10+1]), "just over 32 KiB": strings.Repeat(text(4, 1000), 33),
	} {
		for range 2 { // the second one with what the first has left in the encoder
			checkRoundTrip(t, c, name, content)
		}
	}
	if _, err := c.Decode(nil, "broken", 10); err == nil {
		t.Error("what is broken was decoded")
	}
}

func checkRoundTrip(t *testing.T, c *Codec, name, content string) {
	t.Helper()
	data, err := c.Encode([]byte("before"), []byte(content))
	if err != nil || !bytes.HasPrefix(data, []byte("before")) {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := c.Decode([]byte("x"), string(data[len("before"):]), len(content))
	if err != nil || string(got) != "x"+content {
		t.Errorf("%s: %d bytes became %d, %v", name, len(content), len(got), err)
	}
}

// Content comes out as it went in, whatever the dictionary and the content are. Decoding bytes
// that were not encoded is at most an error.
func FuzzCodec(f *testing.F) {
	f.Add([]byte(text(1, 2000)), []byte(text(2, 700)))
	f.Add([]byte("short"), []byte{})
	f.Fuzz(func(t *testing.T, dictionary, content []byte) {
		if len(dictionary) < 8 {
			return // no dictionary is that short
		}
		c := New(dictionary)
		checkRoundTrip(t, c, "fuzzed", string(content))
		_, _ = c.Decode(nil, string(content), min(len(dictionary), 1000))
	})
}

// A dictionary is made once there is enough to make it of, stays while it fits, and is
// replaced when the contents change their looks.
func TestCompressor(t *testing.T) {
	t.Parallel()
	var c Compressor
	kept := 0
	add := func(look func(seed uint64) string, n int) {
		for i := range n {
			content := []byte(look(uint64(i)))
			_, _ = c.Append(nil, content)
			c.RecordContent(len(content))
			kept++
			c.Train(min(kept, 500), false, func() [][]byte {
				var samples [][]byte
				for j := range 64 {
					samples = append(samples, []byte(look(uint64(i+j*7))))
				}
				return samples
			})
		}
	}
	words := func(seed uint64) string { return text(seed, 600) }
	// A few of many parts, none of which repeats within one content.
	parts := func(seed uint64) string {
		var b strings.Builder
		random := rand.New(rand.NewPCG(seed, 5))
		for _, i := range random.Perm(40)[:8] {
			part := rand.New(rand.NewPCG(uint64(i), 6))
			for range 6 {
				fmt.Fprintf(&b, "%x", part.Uint64())
			}
		}
		return b.String()
	}
	add(words, 30)
	if c.Current() != nil {
		t.Error("there is a dictionary of 30 contents")
	}
	add(words, 1000)
	first := c.Adopted()
	if first == 0 || first > 2 {
		t.Errorf("%d dictionaries", first)
	}
	add(words, 1000)
	if c.Adopted() != first {
		t.Errorf("%d dictionaries became %d, of contents that look alike", first, c.Adopted())
	}
	add(parts, 4000)
	if c.Adopted() == first {
		t.Error("the dictionary stays, and fits no more")
	}
}
