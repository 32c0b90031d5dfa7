package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

func parseQuery(query string) (url.Values, error) { return url.ParseQuery(query) }

// newTestPage returns a page of a program without a cluster, and its server.
func newTestPage(t *testing.T) (*Recorder, *Page, *httptest.Server) {
	t.Helper()
	recorder := NewRecorder(nil)
	page := NewPage(recorder, Sources{
		Program: "widgets", Versions: "v1", Reconciled: []wire.Resource{widgets()},
		Streams: func() []cache.Stats { return nil }, UncachedStreams: func() []follow.StreamState { return nil },
		Cached:     wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) { return nil, io.EOF }),
		Leadership: func() string { return "leads" }, UnreadyReasons: func() []string { return nil },
		CertificateEnds: func() map[string]time.Time { return nil }, Memory: func() Memory { return Memory{Resident: 15e6} },
	})
	server := httptest.NewServer(page)
	t.Cleanup(func() { page.Close(); server.Close() })
	return recorder, page, server
}

// get returns the answer to a request.
func get(t *testing.T, server *httptest.Server, path string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: response.StatusCode, header: response.Header, text: string(body)}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	text   string
}

// An event is what a reader receives.
type event struct{ name, id, data string }

// readEvents sends the events of a path to a channel, until the test ends or the server ends the answer.
func readEvents(t *testing.T, server *httptest.Server, path, lastID string) <-chan event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := server.Client().Do(request) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the answer is %s", response.Status)
	}
	events, done := make(chan event, 1000), make(chan struct{})
	go func() {
		defer close(done)
		defer close(events)
		defer response.Body.Close()
		var e event
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data += value + "\n"
			case "":
				if e.name != "" {
					events <- e
				}
				e = event{}
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return events
}

// nextEvent returns the next event of a name.
func nextEvent(t *testing.T, events <-chan event, name string) event {
	t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatalf("the events have ended without %q", name)
			}
			if e.name == name {
				return e
			}
		case <-timeout:
			t.Fatalf("no event %q comes", name)
		}
	}
}

const (
	hostileName    = `<img src=x onerror=alert(1)>`
	hostileMessage = "</td><script>alert(1)</script>\n\r\nevent: rows\ndata: <b>forged</b>\n\n"
)

// The names and messages of others are text, in the page and in events. The headers forbid everything but the page's own files.
func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	recorder, _, server := newTestPage(t)
	events := readEvents(t, server, "/live-page/events", "")
	stories := readEvents(t, server, "/live-page/events?story=1&kind=Widget&namespace=default&name="+url.QueryEscape(hostileName), "")
	hostile := apply(widgets(), hostileName, hostileName, `{"<script>":"`+"<script>"+`","list":[{"name":"<script>"}],"status":{"conditions":[{"type":"<script>","status":"<script>","message":"<script>"}]}}`)
	record(recorder, "default", hostileName, "Widget default/"+hostileName+" added, "+hostileName, fmt.Errorf("no: %s", hostileMessage), hostile)
	row := nextEvent(t, events, "rows")
	story := nextEvent(t, stories, "story")
	for !strings.Contains(story.data, "reconcile") {
		story = nextEvent(t, stories, "story")
	}
	query := "?name=" + url.QueryEscape(hostileName) + "&cause=" + url.QueryEscape(`"><script>`)
	list := get(t, server, "/live-page").text
	filtered := get(t, server, "/live-page"+query).text
	storyPage := get(t, server, "/live-page/object?kind=Widget&namespace=default&name="+url.QueryEscape(hostileName)).text
	for where, text := range map[string]string{"the row": row.data, "the story": story.data, "the page": list, "the filtered page": filtered, "the page of the story": storyPage} {
		for _, markup := range []string{"<script>", "<img", "<b>forged", "onerror=alert(1)>"} {
			if strings.Contains(text, markup) {
				t.Errorf("%s contains %s:\n%s", where, markup, text)
			}
		}
	}
	for where, text := range map[string]string{"the row": row.data, "the story": story.data, "the page": list} {
		if !strings.Contains(text, "&lt;img src=x") || !strings.Contains(text, "&lt;script&gt;alert(1)") {
			t.Errorf("%s does not show the text:\n%s", where, text)
		}
	}
	for _, path := range []string{"/live-page", "/live-page/object", "/live-page/style.css", "/live-page/script.js", "/live-page/icon.svg"} {
		a := get(t, server, path)
		if got := a.header.Get("Content-Security-Policy"); a.status != http.StatusOK || got != policy || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d with the policy %q", path, a.status, got)
		}
	}
}

// The page has no address of another host, so that it works without a network and reports nothing to anybody.
func TestNoOutsideAddress(t *testing.T) {
	t.Parallel()
	_, _, server := newTestPage(t)
	for _, path := range []string{"/live-page", "/live-page/object", "/live-page/style.css", "/live-page/script.js"} {
		if text := get(t, server, path).text; strings.Contains(text, "//") && strings.Contains(text, "://") {
			t.Errorf("%s has an address:\n%s", path, text)
		}
	}
}

// A reader who comes again receives what is new since the last event. After a restart of the program, the reader learns of
// the restart and receives everything.
func TestEventsAfterTheLastOne(t *testing.T) {
	t.Parallel()
	recorder, _, server := newTestPage(t)
	events := readEvents(t, server, "/live-page/events?kind=Widget", "")
	record(recorder, "default", "one", "Widget default/one added", nil)
	first := nextEvent(t, events, "rows")
	record(recorder, "default", "two", "Widget default/two added", nil)
	again := nextEvent(t, readEvents(t, server, "/live-page/events?kind=Widget", first.id), "rows")
	if strings.Contains(again.data, "<b>one</b>") || !strings.Contains(again.data, "<b>two</b>") {
		t.Errorf("after the first event comes %s", again.data)
	}
	restarted := readEvents(t, server, "/live-page/events", "otherprocess-7")
	if first := <-restarted; first.name != "reset" {
		t.Errorf("after a restart, the first event is %q", first.name)
	}
	if rows := nextEvent(t, restarted, "rows"); !strings.Contains(rows.data, "<b>one</b>") || !strings.Contains(rows.data, "<b>two</b>") {
		t.Errorf("after a restart come %s", rows.data)
	}
	if none := readEvents(t, server, "/live-page/events?kind=Gadget", ""); nextEvent(t, none, "state").data == "" {
		t.Error("the state is empty")
	}
}

// A reader who does not read misses events, and no reconcile waits for the reader.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	recorder, _, server := newTestPage(t)
	pipe := &stuckWriter{header: http.Header{}, stuck: make(chan struct{}), release: make(chan struct{})}
	request := httptest.NewRequest(http.MethodGet, "/live-page/events", nil)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	page := server.Config.Handler
	go func() {
		defer close(served)
		page.ServeHTTP(pipe, request.WithContext(ctx))
	}()
	record(recorder, "default", "first", "Widget default/first added", nil)
	<-pipe.stuck
	began := time.Now()
	for i := range 3 * maxReconciles {
		record(recorder, "default", fmt.Sprint("object-", i), strings.Repeat("cause ", 20), nil)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the reconciles took %s", took)
	}
	close(pipe.release)
	deadline := time.After(20 * time.Second)
	for !strings.Contains(pipe.text(), "event: missed") {
		select {
		case <-deadline:
			t.Fatal("the reader does not learn that it has missed reconciles")
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	<-served
}

// The number of readers is bounded, and Close ends all of them.
func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	_, page, server := newTestPage(t)
	var all []<-chan event
	for range maxReaders {
		all = append(all, readEvents(t, server, "/live-page/events", ""))
	}
	a := get(t, server, "/live-page/events")
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.text, "too many readers") {
		t.Errorf("one more reader gets %d: %s", a.status, a.text)
	}
	page.events.close()
	for _, events := range all {
		for range events {
		}
	}
	if len(page.events.readers) != 0 {
		t.Errorf("%d readers are left", len(page.events.readers))
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A reader is served on one connection for two minutes. Whoever guards the page then asks again whether the reader may read it.
func TestReaderConnectsAgainAfterTwoMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := NewPage(NewRecorder(nil), Sources{
			Streams: func() []cache.Stats { return nil }, UncachedStreams: func() []follow.StreamState { return nil },
			Leadership: func() string { return "leads" }, UnreadyReasons: func() []string { return nil },
			CertificateEnds: func() map[string]time.Time { return nil }, Memory: func() Memory { return Memory{} },
		})
		began := time.Now()
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/live-page/events", nil))
		if lasted := time.Since(began); lasted != 2*time.Minute || !strings.HasPrefix(answer.Body.String(), "retry: 1000\n") {
			t.Errorf("the connection ended after %s, and began with %.60q", lasted, answer.Body)
		}
	})
}
