// Package plot draws the diagrams of the comparison as SVG: lines over an axis that may be logarithmic, and
// groups of bars.
package plot

import (
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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

// The size of a diagram. Lines are narrower than bars, so that their text is readable on a page of 375 pixels.
const (
	lineWidth = 12 * vg.Centimeter
	barWidth  = 18 * vg.Centimeter
	height    = 10 * vg.Centimeter
	margin    = 3 * vg.Millimeter
)

// Lines draws one line for each series.
func Lines(w io.Writer, title string, x, y Axis, series []Series) error {
	p := newPlot(title, y)
	p.X.Label.Text = x.Title
	p.X.Tick.Marker = ticks{x.Log}
	if x.Log {
		p.X.Scale = plot.LogScale{}
	}
	for i, s := range series {
		points := make(plotter.XYs, len(s.X))
		for k := range s.X {
			points[k] = plotter.XY{X: s.X[k], Y: s.Y[k]}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = seriesColor(i), vg.Points(1.5)
		dots.Color, dots.Shape = seriesColor(i), draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(s.Name, line, dots)
	}
	return write(w, p, lineWidth)
}

// Bars draws a group of bars for each name in groups. The k-th value of a series belongs to the
// k-th group.
func Bars(w io.Writer, title string, y Axis, groups []string, series []Series) error {
	p := newPlot(title, y)
	p.NominalX(groups...)
	for i, s := range series {
		oneWidth := 0.6 * barWidth / vg.Length(len(groups)*len(series)+1)
		bars, err := plotter.NewBarChart(plotter.Values(s.Y), oneWidth)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = seriesColor(i), 0
		bars.Offset = oneWidth * vg.Length(float64(i)-float64(len(series)-1)/2)
		labels := plotter.XYLabels{XYs: make(plotter.XYs, len(s.Y)), Labels: make([]string, len(s.Y))}
		for k, v := range s.Y {
			labels.XYs[k], labels.Labels[k] = plotter.XY{X: float64(k), Y: v}, Number(v)
		}
		numbers, err := plotter.NewLabels(labels)
		if err != nil {
			return err
		}
		for k := range numbers.TextStyle {
			numbers.TextStyle[k].Font.Size, numbers.TextStyle[k].XAlign = vg.Points(7), draw.XCenter
		}
		numbers.Offset = vg.Point{X: bars.Offset, Y: vg.Points(2)}
		p.Add(bars, numbers)
		p.Legend.Add(s.Name, bars)
	}
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	p.Y.Min, p.Y.Max = 0, 1.1*p.Y.Max
	return write(w, p, barWidth)
}

// newPlot returns an empty diagram.
func newPlot(title string, y Axis) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.Padding, p.Y.Label.Text = title, vg.Points(6), y.Title
	p.Y.Tick.Marker = ticks{y.Log}
	if y.Log {
		p.Y.Scale = plot.LogScale{}
	}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	p.Add(plotter.NewGrid())
	return p
}

// write writes a diagram of a width as SVG.
func write(w io.Writer, p *plot.Plot, width vg.Length) error {
	canvas := vgsvg.New(width, height)
	canvas.SetColor(color.White)
	canvas.Fill(draw.New(canvas).Path())
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	_, err := canvas.WriteTo(w)
	return err
}

// seriesColor returns the color of the i-th series. The colors are the palette of Okabe and Ito. Readers who
// do not see all colors can distinguish them.
func seriesColor(i int) color.Color {
	palette := []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
		{0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
	}
	return palette[i%len(palette)]
}

// ticks labels an axis with short numbers: 20k in place of 20000.
type ticks struct{ log bool }

// Ticks returns the ticks between two values.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	var ticker plot.Ticker = plot.DefaultTicks{}
	if t.log {
		ticker = plot.LogTicks{Prec: -1}
	}
	all := ticker.Ticks(low, high)
	for i, tick := range all {
		if tick.Label != "" {
			all[i].Label = tickLabel(tick.Value)
		}
	}
	return all
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
