package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

const (
	// maxPause is how long the film waits for the next output. Longer waits of the session are cut to this.
	maxPause = 0.45
	// minPause is the time between two frames. What the terminals receive within this time is one frame.
	minPause = 0.04
	// lastPause is how long the last frame stays before the film begins again.
	lastPause = 3.0
	// maxLength is the length of a film. A longer film is played faster.
	maxLength = 20.0
)

// Sizes of a picture in pixels.
const (
	width      = 900
	margin     = 14
	lineHeight = 18
	fontSize   = 14
	titleSize  = 26
)

// frame is what the terminals show from a moment of the film on.
type frame struct {
	seconds float64
	panes   [paneCount][]line
}

// film is a session as a list of frames.
type film struct {
	frames []frame
	// length is the length in seconds.
	length float64
}

// newFilm returns the film of the events in a record.
func newFilm(record []byte) (film, error) {
	var f film
	var screens [paneCount]*screen
	for i, rows := range paneRows() {
		screens[i] = newScreen(rows, columns)
	}
	now, before, hold := 0.0, 0.0, 0.0
	for text := range bytes.Lines(record) {
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			return f, err
		}
		if e.Pane < 0 || e.Pane >= paneCount {
			return f, fmt.Errorf("an event is about terminal %d, and there are %d", e.Pane, paneCount)
		}
		now += min(e.Seconds-before, maxPause) + hold
		before, hold = e.Seconds, e.Hold
		if e.Text == "" {
			continue
		}
		screens[e.Pane].write(e.Text)
		var panes [paneCount][]line
		for i, s := range screens {
			panes[i] = s.lines()
		}
		if n := len(f.frames); n > 0 && now-f.frames[n-1].seconds < minPause {
			f.frames[n-1].panes = panes
		} else {
			f.frames = append(f.frames, frame{now, panes})
		}
	}
	if len(f.frames) == 0 {
		return f, fmt.Errorf("it has no events")
	}
	f.length = now + lastPause
	if f.length > maxLength {
		speed := (maxLength - lastPause) / now
		for i := range f.frames {
			f.frames[i].seconds *= speed
		}
		f.length = maxLength
	}
	return f, nil
}

// span is a line in a place of the picture, from one frame to before another one.
type span struct {
	pane, row   int
	text        line
	first, last int
}

// spans returns the lines of the film. A line that stays over several frames is one span.
func (f film) spans() []span {
	var spans []span
	for pane, rows := range paneRows() {
		for row := range rows {
			for i := 0; i < len(f.frames); {
				text, first := f.frames[i].panes[pane][row], i
				for i < len(f.frames) && f.frames[i].panes[pane][row] == text {
					i++
				}
				if text != "" {
					spans = append(spans, span{pane, row, text, first, i})
				}
			}
		}
	}
	return spans
}

// render returns the picture of the film, or of its last frame. A moving picture shows its last frame to readers who
// prefer no motion.
func (f film) render(p palette, isMoving bool) []byte {
	rows := paneRows()
	var tops [paneCount]int // of the lines of each terminal
	height := 0
	for i := range rows {
		height += titleSize
		tops[i] = height
		height += rows[i]*lineHeight + margin
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">Two terminals: yare new makes an operator, yare dev runs it, a changed number changes the Deployment, "+
		"and a deleted Deployment comes back</title>\n")
	f.renderStyle(&b, p, isMoving)
	fmt.Fprintf(&b, `<rect class="screen" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for i, title := range [paneCount]string{"terminal 1: the operator", "terminal 2: somebody who uses the cluster"} {
		top := tops[i] - titleSize
		bar := fmt.Sprintf("M1 %dv%dh%dv%d", top+1, titleSize-2, width-2, 2-titleSize)
		if i == 0 { // the corners of the picture are round
			bar = fmt.Sprintf("M1 9v%dh%dv%da8 8 0 0 0-8-8h%da8 8 0 0 0-8 8", titleSize-10, width-2, 10-titleSize, 18-width)
		}
		fmt.Fprintf(&b, `<path class="bar" d="%sz"/>`, bar)
		fmt.Fprintf(&b, `<text class="name" x="%d" y="%d">%s</text>`+"\n", margin, top+titleSize-8, title)
	}
	last := len(f.frames)
	for _, s := range f.spans() {
		class := ""
		switch isLast := s.last == last; {
		case !isMoving && !isLast:
			continue
		case isMoving && isLast && s.first == 0, !isMoving:
		case isLast:
			class = fmt.Sprintf(` class="s" style="animation-name:f%d-%d"`, s.first, s.last)
		default:
			class = fmt.Sprintf(` class="m" style="animation-name:f%d-%d"`, s.first, s.last)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s>%s</text>`+"\n", margin,
			tops[s.pane]+(s.row+1)*lineHeight-4, class, markup(s.text))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// renderStyle writes the colours, and an animation for each pair of frames between which a line is shown.
func (f film) renderStyle(b *bytes.Buffer, p palette, isMoving bool) {
	fmt.Fprintf(b, "<style>\n"+
		"text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:%s;white-space:pre}\n"+
		".screen{fill:%s;stroke:%s}.bar{fill:%s}.name{font-size:12px;fill:%s}.d{fill:%s}.a{fill:%s}.c{fill:%s;font-weight:600}\n",
		fontSize, p.text, p.background, p.border, p.title, p.dim, p.dim, p.accent, p.command)
	if isMoving {
		fmt.Fprintf(b, ".m,.s{animation:%gs step-end infinite}.m{visibility:hidden}\n", math.Round(f.length*100)/100)
		var names []string
		for _, s := range f.spans() {
			name := fmt.Sprintf("f%d-%d", s.first, s.last)
			if !slices.Contains(names, name) && (s.first > 0 || s.last < len(f.frames)) {
				names = append(names, name)
				fmt.Fprintf(b, "@keyframes %s{%s}\n", name, f.keyframes(s))
			}
		}
		b.WriteString("@media (prefers-reduced-motion:reduce){.m,.s{animation:none}}\n")
	}
	b.WriteString("</style>\n")
}

// keyframes returns the steps of the animation of a span. Example: a line from second 5 to second 10 of 20 has the
// steps "0%{visibility:hidden}25%{visibility:visible}50%{visibility:hidden}".
func (f film) keyframes(s span) string {
	var b strings.Builder
	percent := func(i int) string { return fmt.Sprintf("%.4g%%", f.frames[i].seconds/f.length*100) }
	if s.first == 0 {
		b.WriteString("0%{visibility:visible}")
	} else {
		b.WriteString("0%{visibility:hidden}" + percent(s.first) + "{visibility:visible}")
	}
	if s.last < len(f.frames) {
		b.WriteString(percent(s.last) + "{visibility:hidden}")
		b.WriteString("to{visibility:hidden}")
	} else {
		b.WriteString("to{visibility:visible}")
	}
	return b.String()
}

// markup returns a line as content of a text element. What follows the prompt is a command.
func markup(text line) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		content := html.EscapeString(part[1:])
		command, isCommand := strings.CutPrefix(content, "$ ")
		switch {
		case part[0] == 'p' && isCommand:
			b.WriteString(`<tspan class="d">$ </tspan><tspan class="c">` + command + "</tspan>")
		case part[0] == 'p':
			b.WriteString(content)
		default:
			fmt.Fprintf(&b, `<tspan class="%c">%s</tspan>`, part[0], content)
		}
	}
	return b.String()
}
