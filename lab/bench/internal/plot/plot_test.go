package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// checkDrawing fails t unless text is well-formed XML that has these texts.
func checkDrawing(t *testing.T, text string, parts ...string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not occur in\n%s", part, text)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Lines(&out, "Memory <MB> & more", Axis{Title: "objects", Log: true}, Axis{Title: "MB", Log: true}, []Series{
		{Name: "first", X: []float64{1, 1000, 100_000}, Y: []float64{16, 20, 300}},
		{Name: "second", X: []float64{1, 1000, 100_000}, Y: []float64{30, 40, 900}},
	})
	if err != nil {
		t.Fatal(err)
	}
	checkDrawing(t, out.String(), ">first<", ">second<", ">100k<", "Memory &lt;MB&gt; &amp; more")
}

func TestLinesOfOneValue(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Lines(&out, "Memory", Axis{Title: "minutes"}, Axis{Title: "MB"}, []Series{{Name: "a", X: []float64{1}, Y: []float64{3}}}); err != nil {
		t.Fatal(err)
	}
	checkDrawing(t, out.String(), ">minutes<")
}

func TestBars(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Bars(&out, "Size", Axis{Title: "MB"}, []string{"binary", "gzip -9"}, []Series{
		{Name: "a", Y: []float64{17.4, 6.5}}, {Name: "b", Y: []float64{32.1, 10.5}}, {Name: "c", Y: []float64{0, 0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	checkDrawing(t, out.String(), ">gzip -9<", ">17.4<", ">10.5<")
}
