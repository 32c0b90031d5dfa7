package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
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
	c := New(samplesOf(64, words))
	for name, content := range map[string]string{
		"sample": words(3), "alike": text(2, 1500), "one byte": "x", "empty": "", "noise": string(noise[:5000]), "large": string(noise),
		"repetitive": strings.Repeat(text(3, 900), 600), "zeros": strings.Repeat("\x00", 100_000),
		"just over a block": string(noise[:128<<10+1]), "just over 32 KiB": strings.Repeat(text(4, 1000), 33),
		// s2 copies from the dictionary only within the first 64 KiB of a content.
		"around 64 KiB": string(noise[:65_530]) + words(1) + words(2),
	} {
		checkRoundTrip(t, c, name, content)
	}
}

// What is not what was encoded is an error, and leaves alone what was decoded before.
func TestCorruptData(t *testing.T) {
	t.Parallel()
	c := New(samplesOf(64, words))
	content := []byte(text(2, 1500))
	data := string(c.Encode(nil, content))
	check := func(what, data string, size int) {
		t.Helper()
		if got, err := c.Decode([]byte("x"), data, size); err == nil || string(got) != "x" {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
	for i := range data {
		check("cut off", data[:i], len(content))
		check("cut off at the front", data[i+1:], len(content))
		for bit := range 8 {
			corrupt := []byte(data)
			corrupt[i] ^= 1 << bit
			check("one bit", string(corrupt), len(content))
		}
	}
	check("more behind", data+"\x00", len(content))
	check("shorter", data, len(content)-1)
	check("longer", data, len(content)+1)
	check("not encoded", "broken", 10)
	check("negative", data, -1)
	check("too large", data, MaxContentSize+1)
	if _, err := New(samplesOf(64, parts)).Decode(nil, data, len(content)); err == nil {
		t.Error("decoded with another dictionary")
	}
}

// Data that announces another size than the size of the content allocates nothing.
func TestAnnouncedSizeIsNotTrusted(t *testing.T) {
	c := New(samplesOf(64, words))
	content := []byte(text(2, 1500))
	block := c.Encode(nil, content)
	for _, announced := range []uint64{0, uint64(len(content)) - 1, uint64(len(content)) + 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<64 - 1} {
		_, header := binary.Uvarint(block)
		damaged := string(append(binary.AppendUvarint(nil, announced), block[header:]...))
		allocations := testing.AllocsPerRun(10, func() {
			if got, err := c.Decode(nil, damaged, len(content)); err == nil || got != nil {
				t.Errorf("%d bytes are announced: %d bytes, %v", announced, len(got), err)
			}
		})
		if allocations != 0 {
			t.Errorf("%d bytes are announced: %v allocations", announced, allocations)
		}
	}
}

// A codec of few or no bytes works as well.
func TestSmallDictionaries(t *testing.T) {
	t.Parallel()
	for size := range 40 {
		c := New([][]byte{[]byte(text(1, size))})
		checkRoundTrip(t, c, fmt.Sprintf("with a dictionary of %d bytes", size), text(1, 700))
	}
	checkRoundTrip(t, New(nil), "without samples", text(1, 700))
}

// Several goroutines can use one codec, from its first content on.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := New(samplesOf(64, words))
	var running sync.WaitGroup
	for i := range uint64(4) {
		running.Go(func() {
			for size := range 100 {
				checkRoundTrip(t, c, "content", text(i, 100*size))
			}
		})
	}
	running.Wait()
}

// samplesOf returns n contents of a look.
func samplesOf(n int, look func(seed uint64) string) [][]byte {
	var samples [][]byte
	for i := range n {
		samples = append(samples, []byte(look(uint64(i))))
	}
	return samples
}

// words returns a content that has much in common with others.
func words(seed uint64) string { return text(seed, 600) }

// parts returns a content that has few of many parts. No part repeats within the content.
func parts(seed uint64) string {
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

func checkRoundTrip(t *testing.T, c *Codec, name, content string) {
	t.Helper()
	data := c.Encode([]byte("before"), []byte(content))
	if !bytes.HasPrefix(data, []byte("before")) {
		t.Errorf("%s: encoded in place of what was there", name)
		return
	}
	got, err := c.Decode([]byte("x"), string(data[len("before"):]), len(content))
	if err != nil || string(got) != "x"+content {
		t.Errorf("%s: %d bytes became %d, %v", name, len(content), len(got), err)
	}
}

// checkDamaged fails the test if data that was not encoded becomes more or less than size bytes, or
// changes what was decoded before.
func checkDamaged(t *testing.T, c *Codec, data string, size int) {
	t.Helper()
	got, err := c.Decode([]byte("x"), data, size)
	if err == nil && len(got) != 1+size || err != nil && len(got) != 1 || got[0] != 'x' {
		t.Errorf("%d bytes of data became %d bytes, and %d were announced: %v", len(data), len(got)-1, size, err)
	}
}

// Content comes out as it went in, whatever the samples and the content are. Decoding bytes
// that were not encoded is at most an error.
func FuzzCodec(f *testing.F) {
	f.Add([]byte(text(1, 2000)), []byte(text(2, 700)))
	f.Add([]byte("short"), []byte{})
	f.Add([]byte{}, []byte(text(3, 100)))
	f.Add([]byte(words(1)+words(2)), []byte(words(1)+strings.Repeat("ab", 300)+words(9)))
	f.Fuzz(func(t *testing.T, sample, content []byte) {
		half := len(sample) / 2
		for _, samples := range [][][]byte{nil, {sample}, {sample, content}, {sample[:half], sample[half:]}} {
			c := New(samples)
			checkRoundTrip(t, c, "fuzzed", string(content))
			for _, size := range []int{len(sample), 10 * len(content), 10_000} {
				// The size that the data announces is right, so that the rest of the data counts.
				data := string(binary.AppendUvarint(nil, uint64(size))) + string(content)
				checkDamaged(t, c, data, size)
			}
		}
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
