// Package replay is an API server that serves Shops from memory: by lists in pages, by streaming
// lists, and by watches. It writes nothing and serves no other resource. Its answers have the
// form, the order and the size of the answers of a real API server, so that a program can be
// measured with more objects than a real API server holds in a reasonable time.
package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Server serves the Shops of a [Store]. Its bytes are shared by all clients.
type Server struct {
	store *Store
	mux   *http.ServeMux

	mu sync.Mutex
	// watches has the events that each open watch still has to write.
	watches map[chan []byte]bool
}

// maxUnwritten is how many events may wait for one watch.
const maxUnwritten = 1 << 16

// Send sends an event to all open watches, and returns without waiting for them. It returns an error if a watch
// is too slow.
func (s *Server) Send(event []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for events := range s.watches {
		select {
		case events <- event:
		default:
			return errors.New("a watch is too slow")
		}
	}
	return nil
}

// addWatch registers a watch. The events of Send come from the channel. remove ends the registration.
func (s *Server) addWatch() (events <-chan []byte, remove func()) {
	added := make(chan []byte, maxUnwritten)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[added] = true
	return added, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, added)
	}
}

// New returns a server of the Shops in store.
func New(store *Store) *Server {
	s := &Server{store: store, mux: http.NewServeMux(), watches: make(map[chan []byte]bool)}
	for path, document := range discovery() {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(document) // a client that has gone needs no answer
		})
	}
	s.mux.HandleFunc("GET "+collection, s.serveShops)
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

const collection = "/apis/" + group + "/" + version + "/shops"

// serveShops answers a list or a watch.
func (s *Server) serveShops(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	if watch, _ := strconv.ParseBool(query.Get("watch")); !watch {
		s.serveList(w, query.Get("limit"), query.Get("continue"))
		return
	}
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	if query.Get("resourceVersion") == "" {
		initial = true // a watch from no version begins with the objects
	}
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	s.serveWatch(w, r, initial, time.Duration(seconds)*time.Second)
}

// serveList writes one page. The continue token is the index of the next object.
func (s *Server) serveList(w http.ResponseWriter, limit, token string) {
	from := 0
	if token != "" {
		var err error
		if from, err = strconv.Atoi(token); err != nil || from < 0 || from > s.store.Len() {
			http.Error(w, "the continue token is not one of this server", http.StatusBadRequest)
			return
		}
	}
	to := s.store.Len()
	if n, _ := strconv.Atoi(limit); n > 0 {
		to = min(to, from+n)
	}
	more := ""
	if to < s.store.Len() {
		more = fmt.Sprintf(`"continue":"%d","remainingItemCount":%d,`, to, s.store.Len()-to)
	}
	fmt.Fprintf(w, `{"apiVersion":"%s/%s","items":[`, group, version)
	for i := from; i < to; i++ {
		if i > from {
			fmt.Fprint(w, ",")
		}
		_, _ = w.Write(s.store.object(i))
	}
	fmt.Fprintf(w, `],"kind":"ShopList","metadata":{%s"resourceVersion":"%d"}}`+"\n", more, s.store.version())
}

// bookmarkPeriod is how often a watch brings a bookmark, as from an API server.
const bookmarkPeriod = time.Minute

// serveWatch writes the initial objects if they are wanted, and then the events of Send and bookmarks until the
// request ends. It writes each event by itself, as an API server does.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, initial bool, timeout time.Duration) {
	events, remove := s.addWatch()
	defer remove()
	flush := http.NewResponseController(w).Flush
	if initial {
		for i := range s.store.Len() {
			if _, err := w.Write(s.store.event(i)); err != nil {
				return
			}
		}
		fmt.Fprint(w, s.bookmark(true))
	}
	if flush() != nil {
		return
	}
	if timeout <= 0 {
		timeout = time.Hour
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	ticks := time.NewTicker(bookmarkPeriod)
	defer ticks.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case event := <-events:
			if _, err := w.Write(event); err != nil || flush() != nil {
				return
			}
		case <-ticks.C:
			if r.URL.Query().Get("allowWatchBookmarks") == "" {
				continue
			}
			fmt.Fprint(w, s.bookmark(false))
			if flush() != nil {
				return
			}
		}
	}
}

// bookmark returns the event of a bookmark at the newest version. The bookmark that ends a streaming
// list is marked.
func (s *Server) bookmark(endsInitialEvents bool) string {
	annotations := ""
	if endsInitialEvents {
		annotations = `"annotations":{"k8s.io/initial-events-end":"true"},`
	}
	return fmt.Sprintf(
		`{"type":"BOOKMARK","object":{"apiVersion":"%s/%s","kind":"Shop","metadata":{%s"resourceVersion":"%d"}}}`+"\n",
		group, version, annotations, s.store.version())
}

// discovery returns the documents by which clients find the resource.
func discovery() map[string][]byte {
	object := func(kind string, fields map[string]any) []byte {
		fields["kind"], fields["apiVersion"] = kind, "v1"
		text, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		return text
	}
	groupVersion := map[string]any{"groupVersion": group + "/" + version, "version": version}
	verbs := []string{"get", "list", "watch"}
	return map[string][]byte{
		"/api": object("APIVersions", map[string]any{"versions": []string{"v1"}}),
		"/apis": object("APIGroupList", map[string]any{
			"groups": []any{map[string]any{"name": group, "versions": []any{groupVersion}, "preferredVersion": groupVersion}},
		}),
		"/apis/" + group: object("APIGroup", map[string]any{
			"name": group, "versions": []any{groupVersion}, "preferredVersion": groupVersion,
		}),
		"/api/v1": object("APIResourceList", map[string]any{"groupVersion": "v1", "resources": []any{}}),
		"/apis/" + group + "/" + version: object("APIResourceList", map[string]any{
			"groupVersion": group + "/" + version,
			"resources": []any{map[string]any{
				"name": "shops", "singularName": "shop", "kind": "Shop", "namespaced": true, "verbs": verbs,
			}},
		}),
		"/version": object("Info", map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}),
	}
}
