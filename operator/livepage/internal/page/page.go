// Package page serves a page that shows what the controllers of a program do and why: the last reconciles with their
// causes and writes, the story of one object, and the state of the program.
//
// A [Recorder] observes the controllers. It keeps a bounded history: some thousand reconciles, in at most one megabyte.
// A [Page] serves the history over HTTP, and sends what is new as server-sent events. Nothing is written for a reader
// who is not there, and no reader can make a reconcile wait: a slow reader misses events, and the page says how many.
//
// The contents of Secrets and of tokens are neither kept nor compared. A write of them is shown as "changed".
//
// The package writes HTML by itself: see markup. The packages text/template and html/template look methods up by names
// that are known at run time, so that the linker keeps all methods of all types. They would make an operator 6 MB
// larger: see docs/binary.md.
package page

import (
	"context"
	_ "embed"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// Path is the path of the page. All other paths of the page are below Path.
	Path = "/live-page"
	// maxRows bounds the reconciles of one answer.
	maxRows = 100
	// policy is the content security policy: nothing but the style, the script, the icon and the events of the page
	// itself.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	// headers are those of each answer. X-Accel-Buffering is for a proxy, which would hold events back.
	headers = "Content-Security-Policy: " + policy + `
X-Content-Type-Options: nosniff
Referrer-Policy: no-referrer
Cross-Origin-Resource-Policy: same-origin
Cache-Control: no-store
X-Accel-Buffering: no`
)

var (
	// A program has the files compressed, as a browser gets them. UPDATE_FILES=1 go test -run TestFilesAreCompressed
	// compresses them anew.
	//
	//go:embed style.css.gz
	style string
	//go:embed script.js.gz
	script string
	//go:embed icon.svg
	icon string
)

// Page serves the history of a [Recorder] and the state of the program, at [Path] and below. It is safe for concurrent
// use.
type Page struct {
	recorder *Recorder
	sources  Sources
	counter  objectCounter
	events   *eventServer
}

// NewPage returns a page of what a recorder records.
func NewPage(recorder *Recorder, sources Sources) *Page {
	p := &Page{recorder: recorder, sources: sources}
	p.events = &eventServer{
		page: p, instance: strconv.FormatInt(time.Now().UnixMilli(), 36), closed: make(chan struct{}),
		readers: make(chan struct{}, maxReaders),
	}
	return p
}

// Close ends the events of all readers. It may be called again.
func (p *Page) Close() { p.events.close() }

// ServeHTTP serves the page, and what lies below its path.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	contentType, text, isCompressed := "text/html", "", false
	switch strings.TrimPrefix(r.URL.Path, Path) {
	case "":
		text = p.reconcilesPage(r)
	case "/object":
		text = p.storyPage(r)
	case "/events":
		contentType = "text/event-stream"
	case "/style.css":
		contentType, text, isCompressed = "text/css", style, true
	case "/script.js":
		contentType, text, isCompressed = "text/javascript", script, true
	case "/icon.svg":
		contentType, text = "image/svg+xml", icon
	default:
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType+"; charset=utf-8")
	if isCompressed {
		h.Set("Content-Encoding", "gzip")
	}
	if contentType == "text/event-stream" {
		p.events.ServeHTTP(w, r)
		return
	}
	_, _ = io.WriteString(w, text) // the client has gone
}

// setHeaders sets the headers of each answer.
func setHeaders(h http.Header) {
	for _, line := range strings.Split(headers, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
}

// reconcilesPage returns the HTML of the page of the reconciles that the query selects, with the state of the program.
func (p *Page) reconcilesPage(r *http.Request) string {
	query := r.URL.Query()
	f := filterOf(query)
	h := p.recorder.history
	newest := h.newestNumber()
	rows, isMore, _ := h.reconcilesBetween(0, f.Before, maxRows, f.matches)
	m := new(markup)
	p.writeHead(m, p.sources.Program, "live-page/", "live-page")
	m.write(`<section id="state">`)
	p.writeState(r.Context(), m)
	m.write(`</section><section><h2>Reconciles</h2>`)
	writeFilter(m, f, p.kinds(), r.URL.RawQuery != "")
	events := ""
	if f.Before == 0 { // older reconciles do not change
		query.Set("after", p.events.eventID(newest))
		events = "live-page/events?" + query.Encode()
	}
	m.write(`<p id="notice" class="note"></p><table id="reconciles" data-events="%"><thead><tr><th>Time</th><th>Object</th><th>Why</th><th>What it did</th><th>Took</th><th>Next</th></tr></thead>`, events)
	view := reconcileView{h, "live-page/"}
	for _, each := range rows {
		view.writeRow(m, each)
	}
	m.write(`</table>`)
	switch {
	case isMore:
		query.Del("after")
		query.Set("before", strconv.FormatUint(rows[len(rows)-1].Number, 10))
		m.write(`<p><a href="live-page?%">Older reconciles</a></p>`, query.Encode())
	case len(rows) == 0:
		m.write(`<p class="note" id="nothing">No reconcile that is kept fits. New ones appear here.</p>`)
	}
	return endOf(m)
}

// storyPage returns the HTML of the page of the story of one object.
func (p *Page) storyPage(r *http.Request) string {
	query := r.URL.Query()
	o := objectOf(query)
	m := new(markup)
	p.writeHead(m, o.text()+" – "+p.sources.Program, "", "../live-page")
	query.Set("story", "1")
	m.write(`<section><h2 class="subject">%</h2><p id="notice" class="note"></p><div id="story" data-events="events?%">`,
		o.text(), query.Encode())
	p.writeStory(r.Context(), m, o)
	m.write(`</div>`)
	return endOf(m)
}

// objectOf returns the object that a query names.
func objectOf(query url.Values) objectName {
	return objectName{parameter(query, "kind"), parameter(query, "namespace"), parameter(query, "name")}
}

// kinds returns the kinds that the program reconciles, each of them once.
func (p *Page) kinds() (kinds []string) {
	for i := range p.sources.Reconciled {
		if kind := p.sources.Reconciled[i].Kind; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// writeState writes the state of the program.
func (p *Page) writeState(ctx context.Context, m *markup) {
	writeState(ctx, m, &p.sources, p.recorder, &p.counter)
}

// writeStory writes the story of an object.
func (p *Page) writeStory(ctx context.Context, m *markup, o objectName) {
	writeStory(ctx, m, &p.sources, p.recorder.history, o)
}

// writeHead writes the beginning of a page. below and home are the paths of what the page consists of, and of the page
// of reconciles.
func (p *Page) writeHead(m *markup, title, below, home string) {
	m.write(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>%</title>`+
		`<link rel="stylesheet" href="%style.css"><link rel="icon" href="%icon.svg"><script src="%script.js" defer></script></head><body><header><h1><a href="%">%</a></h1><span class="version">%</span>`+
		`<span id="connection" class="badge" hidden></span><button id="pause" type="button" hidden>Pause</button></header><main>`,
		title, below, below, below, home, p.sources.Program, p.sources.Versions)
}

// endOf writes the end of a page, and returns the page.
func endOf(m *markup) string {
	m.write(`</section></main><footer>Times are in UTC. The program keeps its last reconciles in memory, in one megabyte at most. It never keeps the contents of Secrets.</footer></body></html>`)
	return m.String()
}
