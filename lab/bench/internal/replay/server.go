// Package replay is an API server that serves Shops from memory: by lists in pages, by streaming
// lists, and by watches. Its answers have the
// form, the order and the size of the answers of a real API server, so that a program can be
// measured with more objects than a real API server holds in a reasonable time. It stores the Leases and the Events of
// programs that elect a leader, and serves no other resource.
package replay

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube/wire"
)

// Server serves the Shops of a [Store]. Its bytes are shared by all clients.
type Server struct {
	store *Store
	mux   *http.ServeMux
	// others stores all other objects.
	others *fakeserver.Server

	mu sync.Mutex
	// watches has the events that each open watch still has to write.
	watches map[chan []byte]bool
}

// discovery has the documents by which clients find the resource.
//
//go:embed discovery.json
var discovery []byte

const collection = "/apis/" + group + "/" + version + "/shops"

// New returns a server of the Shops in store.
func New(store *Store) *Server {
	s := &Server{store: store, mux: http.NewServeMux(), others: fakeserver.New(), watches: make(map[chan []byte]bool)}
	var documents map[string]json.RawMessage
	if err := json.Unmarshal(discovery, &documents); err != nil {
		panic(err) // a test reads the file
	}
	for path, document := range documents {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", wire.ContentJSON)
			_, _ = w.Write(document) // a client that has gone needs no answer
		})
	}
	s.mux.HandleFunc("GET "+collection, s.serveShops)
	for _, prefix := range []string{"/api/{version}", "/apis/{group}/{version}"} {
		s.mux.HandleFunc(prefix+"/namespaces/{namespace}/{resource}", s.serveOthers)
		s.mux.HandleFunc(prefix+"/namespaces/{namespace}/{resource}/{name}", s.serveOthers)
	}
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serveOthers reads or writes an object that is no Shop, such as a Lease.
func (s *Server) serveOthers(w http.ResponseWriter, r *http.Request) {
	request := &wire.Request{
		Verb: map[string]wire.Verb{
			http.MethodGet: wire.VerbGet, http.MethodPost: wire.VerbCreate, http.MethodPut: wire.VerbUpdate,
		}[r.Method],
		Resource:  wire.Resource{Plural: r.PathValue("resource")},
		Namespace: r.PathValue("namespace"), Name: r.PathValue("name"), Query: r.URL.Query(),
	}
	request.Resource.Group, request.Resource.Version = r.PathValue("group"), r.PathValue("version")
	var err error
	if request.Body, err = io.ReadAll(r.Body); err == nil && len(request.Body) > 0 {
		// client-go sends protobuf. Answers are JSON, which it accepts too.
		var object runtime.Object
		var kind *schema.GroupVersionKind
		if object, kind, err = scheme.Codecs.UniversalDeserializer().Decode(request.Body, nil, nil); err == nil {
			object.GetObjectKind().SetGroupVersionKind(*kind)
			request.Resource.Kind, request.ContentType = kind.Kind, wire.ContentJSON
			request.Body, err = json.Marshal(object)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", wire.ContentJSON)
	response, err := s.others.Do(r.Context(), request)
	if failure, ok := errors.AsType[*wire.Error](err); ok {
		failure.Answer.Kind, failure.Answer.APIVersion = "Status", "v1"
		w.WriteHeader(failure.Code)
		_ = json.NewEncoder(w).Encode(failure.Answer) // a client that has gone needs no answer
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(response.Code)
	_, _ = w.Write(response.Body) // as above
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

// serveShops answers a list or a watch.
func (s *Server) serveShops(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", wire.ContentJSON)
	if watch, _ := strconv.ParseBool(query.Get("watch")); !watch {
		s.serveList(w, query.Get("limit"), query.Get("continue"))
		return
	}
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	if seconds <= 0 {
		seconds = 3600
	}
	// A watch from no version begins with the objects.
	s.serveWatch(w, r, initial || query.Get("resourceVersion") == "", time.Duration(seconds)*time.Second)
}

// serveList writes one page. The continue token is the index of the next object.
func (s *Server) serveList(w http.ResponseWriter, limit, token string) {
	from, err := strconv.Atoi("0" + token)
	if err != nil || from > s.store.Len() {
		http.Error(w, "the continue token is not one of this server", http.StatusBadRequest)
		return
	}
	to, more := s.store.Len(), ""
	if n, _ := strconv.Atoi(limit); n > 0 && from+n < to {
		to = from + n
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
	events := make(chan []byte, maxUnwritten)
	s.mu.Lock()
	s.watches[events] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, events)
	}()
	if initial {
		for i := range s.store.Len() {
			if _, err := w.Write(s.store.event(i)); err != nil {
				return
			}
		}
		_, _ = w.Write(s.bookmark(`"annotations":{"k8s.io/initial-events-end":"true"},`)) // the flush reports errors
	}
	end, ticks := time.After(timeout), time.Tick(bookmarkPeriod)
	for next := []byte(nil); ; {
		if _, err := w.Write(next); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end:
			return
		case next = <-events:
		case <-ticks:
			next = s.bookmark("")
		}
	}
}

// bookmark returns the event of a bookmark at the newest version, with further fields of the metadata.
func (s *Server) bookmark(fields string) []byte {
	return fmt.Appendf(nil,
		`{"type":"BOOKMARK","object":{"apiVersion":"%s/%s","kind":"Shop","metadata":{%s"resourceVersion":"%d"}}}`+"\n",
		group, version, fields, s.store.version())
}
