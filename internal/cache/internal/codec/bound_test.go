package codec

import (
	"testing"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/internal/testkit/bound"
)

// looks returns the contents that are measured.
func looks() map[string]func(i int) string {
	return map[string]func(i int) string{"a custom resource": samples.New(1).WebApp, "a Pod": samples.New(1).Pod}
}

// recordedSizes are the bytes that are left of a content.
var recordedSizes = map[string]float64{"a custom resource": 267.7, "a Pod": 592.5}

// Contents take no more than recorded, and neither way allocates anything but the result.
func TestBoundsOfCodec(t *testing.T) {
	for name, look := range looks() {
		var train, contents [][]byte
		for i := range 64 {
			train = append(train, []byte(look(i)))
		}
		for i := range 200 {
			contents = append(contents, []byte(look(64+i)))
		}
		c := New(train)
		bound.Check(t, name+": bytes", float64(c.Cost(contents))/float64(len(contents)), recordedSizes[name])
		var data, content []byte
		bound.CheckAllocations(t, name+" is encoded", 0, func() { data = c.Encode(data[:0], contents[0]) })
		text := string(data)
		bound.CheckAllocations(t, name+" is decoded", 0, func() {
			var err error
			if content, err = c.Decode(content[:0], text, len(contents[0])); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func BenchmarkCodec(b *testing.B) {
	for name, look := range looks() {
		var train [][]byte
		for i := range 64 {
			train = append(train, []byte(look(i)))
		}
		c := New(train)
		content := []byte(look(64))
		data := string(c.Encode(nil, content))
		var buffer []byte
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buffer = c.Encode(buffer[:0], content)
			}
			b.ReportMetric(float64(len(buffer)), "B/object")
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buffer, err = c.Decode(buffer[:0], data, len(content)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/new", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				New(train)
			}
		})
	}
}
