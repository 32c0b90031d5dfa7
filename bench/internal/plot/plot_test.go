package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// checkXML fails t unless text is well-formed XML.
func checkXML(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Lines(&out, "Memory <MB> & more", Axis{Title: "objects", Log: true}, Axis{Title: "MB", Log: true}, []Series{
		{Name: "a", X: []float64{1, 1000, 100_000}, Y: []float64{16, 20, 300}},
		{Name: "b", X: []float64{1, 1000, 100_000}, Y: []float64{30, 40, 900}},
	})
	if err != nil {
		t.Fatal(err)
	}
	checkXML(t, out.String())
	for part, count := range map[string]int{"<polyline": 2, "<circle": 6, ">100k</text>": 1, "&lt;MB&gt; &amp; more": 2} {
		if n := strings.Count(out.String(), part); n != count {
			t.Errorf("%q occurs %d times instead of %d in\n%s", part, n, count, out.String())
		}
	}
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
	checkXML(t, out.String())
	if n := strings.Count(out.String(), "<rect"); n != 6+3 {
		t.Errorf("%d rectangles instead of 9 in\n%s", n, out.String())
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	s := newScale(Axis{Log: true}, 0, 100)
	s.include(1, 1000/1.05)
	if got := s.at(10); got < 33.3 || got > 33.4 {
		t.Errorf("10 of 1 to 1000 is at %g", got)
	}
	if got := s.ticks(); !slices.Equal(got, []float64{1, 10, 100}) && !slices.Equal(got, []float64{1, 10, 100, 1000}) {
		t.Errorf("the ticks of 1 to 1000 are %v", got)
	}
	s = newScale(Axis{Log: true}, 0, 100)
	s.include(9, 170)
	if got := s.ticks(); !slices.Equal(got, []float64{10, 20, 50, 100}) {
		t.Errorf("the ticks of 9 to 178 are %v", got)
	}
	s = newScale(Axis{}, 0, 100)
	s.include(40)
	if got := s.ticks(); len(got) < 3 || len(got) > 7 || got[0] != 0 {
		t.Errorf("the ticks of 0 to 42 are %v", got)
	}
}
