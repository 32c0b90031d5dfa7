// Package plot draws the diagrams of the comparison as SVG: lines over a logarithmic axis, and
// bars. The text of a diagram follows the colours of the reader: it is legible on white and on
// black.
package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
)

// Series is the values of one program.
type Series struct {
	Name string
	// X and Y have the same length. X is positive. Bars have no X.
	X, Y []float64
}

// Axis is the title of an axis and its scale.
type Axis struct {
	Title string
	// Log makes the axis logarithmic. All values must be positive then.
	Log bool
}

const (
	width, height = 720, 400
	// The margins of the area that the values are drawn in.
	left, right, top, bottom = 70, 190, 44, 52
)

// colour returns the colour of the i-th series. The colours are the palette of Okabe and Ito, which readers
// who do not see all colours can distinguish.
func colour(i int) string {
	colours := []string{"#0072b2", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"}
	return colours[i%len(colours)]
}

// Lines draws one line for each series.
func Lines(w io.Writer, title string, x, y Axis, series []Series) error {
	d := newDrawing(title)
	d.x, d.y = newScale(x, left, width-right), newScale(y, height-bottom, top)
	for _, s := range series {
		d.x.include(s.X...)
		d.y.include(s.Y...)
	}
	d.axes()
	for i, s := range series {
		var points []string
		for k := range s.X {
			points = append(points, fmt.Sprintf("%.1f,%.1f", d.x.at(s.X[k]), d.y.at(s.Y[k])))
		}
		d.printf(`<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`, colour(i), strings.Join(points, " "))
		for _, point := range points {
			px, py, _ := strings.Cut(point, ",")
			d.printf(`<circle cx="%s" cy="%s" r="3" fill="%s"/>`, px, py, colour(i))
		}
		d.legend(i, s.Name)
	}
	return d.write(w)
}

// Bars draws a group of bars for each name in groups. The k-th value of a series belongs to the
// k-th group.
func Bars(w io.Writer, title string, y Axis, groups []string, series []Series) error {
	d := newDrawing(title)
	d.y = newScale(y, height-bottom, top)
	for _, s := range series {
		d.y.include(s.Y...)
	}
	d.axes()
	group := float64(width-left-right) / float64(len(groups))
	bar := group * 0.8 / float64(len(series))
	for k, name := range groups {
		from := left + group*float64(k)
		d.text(from+group/2, height-bottom+18, "middle", name)
		for i, s := range series {
			x, y := from+group*0.1+bar*float64(i), d.y.at(s.Y[k])
			d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, bar*0.9, max(0, d.y.from-y), colour(i))
			d.printf(`<text x="%.1f" y="%.1f" font-size="10" text-anchor="middle">%s</text>`, x+bar*0.45, y-3, Number(s.Y[k]))
		}
	}
	for i, s := range series {
		d.legend(i, s.Name)
	}
	return d.write(w)
}

// Number returns a number with three digits, and with as many digits as it needs before the point.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
}

// scale maps the values of an axis to a range of pixels.
type scale struct {
	Axis
	from, to  float64
	low, high float64
}

func newScale(a Axis, from, to float64) scale {
	s := scale{Axis: a, from: from, to: to}
	if a.Log {
		s.low, s.high = math.Inf(1), math.Inf(-1)
	}
	return s
}

// include makes the scale wide enough for values.
func (s *scale) include(values ...float64) {
	for _, v := range values {
		s.low, s.high = min(s.low, v), max(s.high, v*1.05)
	}
}

func (s *scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.Log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if high == low {
		return s.from
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// ticks returns the values that are labelled: powers of ten, with their double and their fivefold
// if there are few, or some five round values.
func (s *scale) ticks() []float64 {
	var all []float64
	if s.Log {
		factors := []float64{1}
		if s.high < 1000*s.low {
			factors = []float64{1, 2, 5}
		}
		for power := math.Pow(10, math.Floor(math.Log10(s.low))); power <= s.high; power *= 10 {
			for _, factor := range factors {
				if v := power * factor; v >= s.low*(1-1e-9) && v <= s.high {
					all = append(all, v)
				}
			}
		}
		return all
	}
	if s.high <= s.low {
		return []float64{s.low}
	}
	step := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/2)))
	for _, factor := range []float64{1, 2, 5} {
		if (s.high-s.low)/(step*factor) <= 6 {
			step *= factor
			break
		}
	}
	for v := math.Ceil(s.low/step) * step; v <= s.high; v += step {
		all = append(all, v)
	}
	return all
}

// drawing is a diagram that is being drawn.
type drawing struct {
	body strings.Builder
	x, y scale
}

func newDrawing(title string) *drawing {
	d := new(drawing)
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`, width, height, width, height)
	d.printf(`<style>text{fill:#222}.line{stroke:#999}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>`)
	d.printf(`<title>%s</title>`, html.EscapeString(title))
	d.printf(`<text x="%d" y="22" font-size="15">%s</text>`, left, html.EscapeString(title))
	return d
}

// printf writes one line.
func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.body, format+"\n", args...) }

func (d *drawing) text(x, y float64, anchor, text string) {
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, html.EscapeString(text))
}

// axes draws both axes with their labels. Without an x axis it draws the y axis alone.
func (d *drawing) axes() {
	for _, v := range d.y.ticks() {
		y := d.y.at(v)
		d.printf(`<line class="line" x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke-width="0.5"/>`, left, y, width-right, y)
		d.text(left-8, y+4, "end", tickLabel(v))
	}
	d.printf(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`, (top+height-bottom)/2, html.EscapeString(d.y.Title))
	d.printf(`<line class="line" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, height-bottom, width-right, height-bottom)
	if d.x.to == 0 {
		return
	}
	for _, v := range d.x.ticks() {
		x := d.x.at(v)
		d.printf(`<line class="line" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, height-bottom, x, height-bottom+5)
		d.text(x, height-bottom+18, "middle", tickLabel(v))
	}
	d.text((left+width-right)/2, height-12, "middle", d.x.Title)
}

func (d *drawing) legend(i int, name string) {
	y := float64(top + 10 + 20*i)
	d.printf(`<rect x="%d" y="%.1f" width="12" height="12" fill="%s"/>`, width-right+16, y-10, colour(i))
	d.text(width-right+34, y, "start", name)
}

func (d *drawing) write(w io.Writer) error {
	d.printf("</svg>")
	_, err := io.WriteString(w, d.body.String())
	return err
}

// tickLabel returns a round number in few characters.
func tickLabel(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}
