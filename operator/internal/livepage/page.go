package livepage

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
	// policy is the content security policy: nothing but the style, the script, the icon and the events of the page itself.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

var (
	//go:embed style.css
	style string
	//go:embed script.js
	script string
	//go:embed icon.svg
	icon string
)

// A Page serves the history of a [Recorder] and the state of the program, at [Path] and below. It is safe for concurrent use.
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
		history: recorder.history, writeState: p.writeState, writeStory: p.writeStory,
		instance: strconv.FormatInt(time.Now().UnixMilli(), 36), closed: make(chan struct{}),
	}
	return p
}

// Close ends the events of all readers. It may be called again.
func (p *Page) Close() { p.events.close() }

// ServeHTTP serves the page, and what lies below its path.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	switch strings.TrimPrefix(r.URL.Path, Path) {
	case "":
		p.serveReconciles(w, r)
	case "/object":
		p.serveStory(w, r)
	case "/events":
		p.events.ServeHTTP(w, r)
	case "/style.css":
		writeFile(w, "text/css; charset=utf-8", style)
	case "/script.js":
		writeFile(w, "text/javascript; charset=utf-8", script)
	case "/icon.svg":
		writeFile(w, "image/svg+xml", icon)
	default:
		http.NotFound(w, r)
	}
}

// writeFile answers with a file of the page.
func writeFile(w http.ResponseWriter, contentType, text string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, text) // the client has gone
}

// setHeaders sets the headers of each answer.
func setHeaders(h http.Header) {
	for _, each := range [][2]string{
		{"Content-Security-Policy", policy}, {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"}, {"Cache-Control", "no-store"},
	} {
		h.Set(each[0], each[1])
	}
}

// serveReconciles answers with the reconciles that the query selects, and with the state of the program.
func (p *Page) serveReconciles(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r.URL.Query())
	h := p.recorder.history
	newest := h.newestNumber()
	rows, isMore, _ := h.reconcilesBetween(0, f.Before, maxRows, f.matches)
	m := new(markup)
	p.writeHead(m, p.sources.Program, "live-page/", "live-page")
	m.write(`<section id="state">`)
	p.writeState(r.Context(), m)
	m.write(`</section><section><h2>Reconciles</h2>`)
	writeFilter(m, f, p.kinds())
	events := "live-page/events?" + f.queryWith("after", p.events.eventID(newest))
	if f.Before != 0 { // older ones do not change
		events = ""
	}
	m.write(`<p id="notice" class="note"></p><table id="reconciles" data-events="%"><thead><tr><th>Time</th><th>Object</th><th>Why</th><th>What it did</th><th>Took</th><th>Next</th></tr></thead>`, events)
	view := reconcileView{h, "live-page/"}
	for _, each := range rows {
		view.writeRow(m, each)
	}
	m.write(`</table>`)
	switch {
	case isMore:
		m.write(`<p><a href="live-page?%">Older reconciles</a></p>`, f.queryWith("before", strconv.FormatUint(rows[len(rows)-1].Number, 10)))
	case len(rows) == 0:
		m.write(`<p class="note" id="nothing">No reconcile that is kept fits. New ones appear here.</p>`)
	}
	writeEnd(w, m)
}

// serveStory answers with the story of one object.
func (p *Page) serveStory(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	o := objectOf(query)
	m := new(markup)
	p.writeHead(m, o.String()+" – "+p.sources.Program, "", "../live-page")
	query.Set("story", "1")
	m.write(`<section><h2 class="subject">%</h2><p id="notice" class="note"></p><div id="story" data-events="events?%">`, o.String(), query.Encode())
	p.writeStory(r.Context(), m, o)
	m.write(`</div>`)
	writeEnd(w, m)
}

// objectOf returns the object that a query names.
func objectOf(query url.Values) objectName {
	return objectName{query.Get("kind"), query.Get("namespace"), query.Get("name")}
}

// kinds returns the kinds that the program reconciles, sorted.
func (p *Page) kinds() (kinds []string) {
	for _, r := range p.sources.Reconciled {
		if !slices.Contains(kinds, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// writeState writes the state of the program.
func (p *Page) writeState(ctx context.Context, m *markup) {
	writeState(m, observedState(ctx, &p.sources, p.recorder, &p.counter), time.Now())
}

// writeStory writes the story of an object.
func (p *Page) writeStory(ctx context.Context, m *markup, o objectName) {
	writeStory(m, reconcileView{p.recorder.history, ""}, storyOf(ctx, &p.sources, p.recorder.history, o))
}

// writeHead writes the beginning of a page. below and home are the paths of what the page consists of, and of the page of
// reconciles.
func (p *Page) writeHead(m *markup, title, below, home string) {
	m.write(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>%</title>`+
		`<link rel="stylesheet" href="%style.css"><link rel="icon" href="%icon.svg"><script src="%script.js" defer></script></head><body><header><h1><a href="%">%</a></h1><span class="version">%</span>`+
		`<span id="connection" class="badge" hidden></span><button id="pause" type="button" hidden>Pause</button></header><main>`,
		title, below, below, below, home, p.sources.Program, p.sources.Versions)
}

// writeEnd writes the end of a page, and answers with the page.
func writeEnd(w http.ResponseWriter, m *markup) {
	m.write(`</section></main><footer>Times are in UTC. The program keeps its last reconciles in memory, in one megabyte at most. It never keeps the contents of Secrets.</footer></body></html>`)
	writeFile(w, "text/html; charset=utf-8", m.String())
}
