package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// unusual returns contents that the usual fuzz inputs would hardly have.
func unusual(r *rand.Rand) []byte {
	var b bytes.Buffer
	n := []int{0, 1, 7, 8, 9, 255, 256, 257, 4096, 70_000, 300_000, 1 << 20}[r.IntN(12)]
	switch r.IntN(12) {
	case 0: // huge numbers
		for b.Len() < n {
			fmt.Fprintf(&b, `{"n":%d%d%d,"f":-1.%de+%d},`, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(400))
		}
	case 1: // duplicate and empty keys
		for b.Len() < n {
			b.WriteString(`"":{"a":1,"a":2,"":null,"":[]},`)
		}
	case 2: // deep nesting
		b.WriteString(strings.Repeat(`[{"":`, n/5) + strings.Repeat("}]", n/5))
	case 3: // bytes that are no UTF-8
		for b.Len() < n {
			b.WriteByte(byte(128 + r.IntN(128)))
		}
	case 4: // one string
		b.WriteString(`{"s":"` + strings.Repeat(string(rune('a'+r.IntN(26))), n) + `"}`)
	case 5: // white space
		for b.Len() < n {
			b.WriteString(strings.Repeat([]string{" ", "\t", "\n", "\r\n"}[r.IntN(4)], r.IntN(100)) + "null,")
		}
	case 6: // a period
		p := make([]byte, 1+r.IntN(40))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		for b.Len() < n {
			b.Write(p)
		}
	case 7: // noise
		for b.Len() < n {
			b.WriteByte(byte(r.Uint32()))
		}
	case 8: // zeros
		b.Write(make([]byte, n))
	case 9: // the same block at growing distances
		block := make([]byte, 50+r.IntN(200))
		for i := range block {
			block[i] = byte('a' + r.IntN(26))
		}
		for b.Len() < n {
			b.Write(block)
			for range r.IntN(1 + b.Len()) {
				b.WriteByte(byte(r.Uint32()))
				if b.Len() > 1<<20 {
					break
				}
			}
		}
	case 10: // text with changes
		for b.Len() < n {
			fmt.Fprintf(&b, `{"metadata":{"name":"web-%d","uid":"%08x-%04x","labels":{"a":"%s"}},"spec":{"replicas":%d}}`, r.IntN(1e6), r.Uint32(), r.IntN(1<<16), strings.Repeat("x", r.IntN(90)), r.IntN(100))
		}
	default: // emoji and surrogates
		for b.Len() < n {
			b.WriteString([]string{"😀", `\ud83d\ude00`, `\ud800`, "\u2028", "é", "\xff\xfe"}[r.IntN(6)])
		}
	}
	return b.Bytes()
}

// edited returns a content with a few changes.
func edited(r *rand.Rand, content []byte) []byte {
	content = bytes.Clone(content)
	for range r.IntN(20) {
		if len(content) == 0 {
			break
		}
		i := r.IntN(len(content))
		switch r.IntN(3) {
		case 0:
			content[i] = byte(r.Uint32())
		case 1:
			content = slices.Delete(content, i, min(len(content), i+r.IntN(60)))
		default:
			content = slices.Insert(content, i, []byte(fmt.Sprint(r.Uint64()))...)
		}
	}
	return content
}

// damaged returns encoded data with a few changes.
func damaged(r *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + r.IntN(4) {
		i := r.IntN(len(data))
		switch r.IntN(4) {
		case 0:
			data[i] ^= byte(1 << r.IntN(8))
		case 1:
			data[i] = byte(r.Uint32())
		case 2: // the data ends early
			data = data[:max(1, i)]
		default: // a part occurs twice
			data = slices.Insert(data, i, data[i:min(len(data), i+r.IntN(9))]...)
		}
	}
	return data
}

// Any content comes out as it went in. Damaged data is an error, or becomes as many bytes as the
// content has, and is never a panic.
func TestUnusualContents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 99))
			var samples [][]byte
			for range r.IntN(20) {
				samples = append(samples, unusual(r))
			}
			c := New(samples)
			for range 8 {
				content := unusual(r)
				if len(samples) > 0 && r.IntN(3) == 0 {
					content = edited(r, samples[r.IntN(len(samples))])
				}
				checkRoundTrip(t, c, "unusual", string(content))
				if len(content) > 100_000 {
					continue
				}
				data := c.Encode(nil, content)
				for range 20 {
					checkDamaged(t, c, string(damaged(r, data)), len(content))
				}
				// With the right size in front the rest is decoded.
				_, header := binary.Uvarint(data)
				for range 100 {
					broken := slices.Concat(data[:header], damaged(r, data[header:]))
					checkDamaged(t, c, string(broken), len(content))
				}
				checkDamaged(t, c, string(data), r.IntN(len(content)+100))
			}
		})
	}
}
