package codec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
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
	case 8: // zeros, which the padding of a dictionary has too
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

func TestRoundTripOfUnusualContents(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("PROOF_SECONDS"))
	end := time.Now().Add(time.Duration(max(seconds, 5)) * time.Second)
	rounds, bytesIn := 0, 0
	for seed := uint64(1); time.Now().Before(end); seed++ {
		r := rand.New(rand.NewPCG(seed, 99))
		var samples [][]byte
		for range r.IntN(40) {
			s := unusual(r)
			if len(s) > 40_000 && r.IntN(4) > 0 {
				s = s[:40_000]
			}
			samples = append(samples, s)
		}
		c := New(samples)
		for range 12 {
			content := unusual(r)
			if len(samples) > 0 && r.IntN(3) == 0 { // a sample with edits
				content = bytes.Clone(samples[r.IntN(len(samples))])
				for range r.IntN(20) {
					if len(content) == 0 {
						break
					}
					i := r.IntN(len(content))
					switch r.IntN(3) {
					case 0:
						content[i] = byte(r.Uint32())
					case 1:
						content = append(content[:i:i], content[min(len(content), i+r.IntN(60)):]...)
					default:
						content = append(content[:i:i], append(unusual(rand.New(rand.NewPCG(r.Uint64(), 1)))[:0:0], append([]byte(fmt.Sprint(r.Uint64())), content[i:]...)...)...)
					}
				}
			}
			prefix := []byte("prefix")
			encoded := c.Encode(bytes.Clone(prefix), content)
			if !bytes.HasPrefix(encoded, prefix) {
				t.Fatalf("seed %d: the prefix is gone", seed)
			}
			decoded, err := c.Decode(bytes.Clone(prefix), string(encoded[len(prefix):]), len(content))
			if err != nil || !bytes.Equal(decoded[len(prefix):], content) {
				t.Fatalf("seed %d: %d bytes, %d encoded: %v", seed, len(content), len(encoded), err)
			}
			// Damaged data must not panic.
			data := encoded[len(prefix):]
			if len(data) > 2 && len(content) < 100_000 {
				broken := bytes.Clone(data)
				broken[r.IntN(len(broken))] ^= byte(1 << r.IntN(8))
				sum := checksum(broken[:len(broken)-2])
				broken[len(broken)-2], broken[len(broken)-1] = byte(sum), byte(sum>>8) // so that the decoder sees it
				_, _ = c.Decode(nil, string(broken), len(content))
				_, _ = c.Decode(nil, string(broken), r.IntN(len(content)+100))
			}
			rounds++
			bytesIn += len(content)
		}
	}
	t.Logf("%d contents, %d MB", rounds, bytesIn>>20)
}
