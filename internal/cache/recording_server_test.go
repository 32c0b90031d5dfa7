package cache

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// state is one version of an object of a recordingServer.
type state struct {
	Metadata struct {
		Name       string            `json:"name"`
		Namespace  string            `json:"namespace"`
		UID        types.UID         `json:"uid"`
		Version    string            `json:"resourceVersion"`
		Labels     map[string]string `json:"labels,omitempty"`
		Finalizers []string          `json:"finalizers,omitempty"`
		Deletion   string            `json:"deletionTimestamp,omitempty"`
		Grace      *int64            `json:"deletionGracePeriodSeconds,omitempty"`
	} `json:"metadata"`
	Spec   int `json:"spec"`
	Status int `json:"status"`
}

// moment is the state of an object from a version on. The state is nil if there was no object.
type moment struct {
	version int
	state   *state
}

// recordingServer is an API server of one kind. It remembers every state that an object has had, and
// the version at each write. The test of read-your-writes needs both to know what a read may return.
// Watches receive single events, when the test delivers them. The shared fake server, package
// fakeserver, has neither.
type recordingServer struct {
	mu      sync.Mutex
	random  *rand.Rand // nil without delays and faults
	version int
	made    int
	objects map[kube.Key]*state
	// history holds all states of each object.
	history map[kube.Key][]moment
	log     []logged
	// compacted is the version up to which a watch cannot be resumed.
	compacted int
	watches   map[*modelWatch]bool
	// answersDeleteWithObject is true if a delete is answered with the object, as the delete of a Service is. hasGracePeriod
	// is true if a delete has a grace period, as the delete of a Pod has.
	answersDeleteWithObject, hasGracePeriod bool
	// effects holds the effects of each write.
	effects map[*wire.Request][]effect
	// requests counts the requests that were not for a stream.
	requests int
}

// effect is the version at which a write took effect, or had nothing to change.
type effect struct {
	key     kube.Key
	version int
}

type logged struct {
	version int
	kind    string
	key     kube.Key
	state   state
}

// modelWatch is a watch with the events that were not delivered yet.
type modelWatch struct {
	feed    *feed
	r       *wire.Request
	pending []string
}

func newRecordingServer(random *rand.Rand) *recordingServer {
	return &recordingServer{
		random: random, version: 100, objects: make(map[kube.Key]*state), history: make(map[kube.Key][]moment),
		watches: make(map[*modelWatch]bool), effects: make(map[*wire.Request][]effect),
	}
}

// streamHandler returns the handler for streams. Its requests are not counted, and do not fail.
func (s *recordingServer) streamHandler() wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		if r.Verb == wire.VerbWatch {
			return s.watch(r)
		}
		response, _, err := s.serve(r)
		s.delay()
		return response, err
	})
}

func (s *recordingServer) Do(_ context.Context, r *wire.Request) (*wire.Response, error) {
	s.delay()
	s.mu.Lock()
	s.requests++
	fault := s.random != nil && r.Verb.IsWrite() && s.random.IntN(8) == 0
	executed := !fault || s.random.IntN(2) == 0
	s.mu.Unlock()
	var response *wire.Response
	var err error
	if executed {
		response, _, err = s.serve(r)
	}
	s.delay()
	if fault {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
	}
	return response, err
}

// delay waits for a random time, so that answers overtake each other.
func (s *recordingServer) delay() {
	if s.random == nil {
		return
	}
	s.mu.Lock()
	d := s.random.IntN(4)
	s.mu.Unlock()
	time.Sleep(time.Duration(d) * time.Millisecond)
}

func (s *recordingServer) watch(r *wire.Request) (*wire.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &modelWatch{r: r}
	w.feed = newFeed(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	})
	if r.Query.Get("sendInitialEvents") == "true" {
		for _, k := range slices.SortedFunc(maps.Keys(s.objects), func(a, b kube.Key) int { return strings.Compare(a.String(), b.String()) }) {
			w.add("ADDED", k, *s.objects[k])
		}
		w.pending = append(w.pending, event("BOOKMARK", fmt.Sprintf(
			`{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, s.version)))
	} else {
		from, _ := strconv.Atoi(r.Query.Get("resourceVersion"))
		if from < s.compacted || from > s.version {
			return nil, refusal(r, http.StatusGone, metav1.StatusReasonExpired)
		}
		for _, l := range s.log {
			if l.version > from {
				w.add(l.kind, l.key, l.state)
			}
		}
	}
	s.watches[w] = true
	return &wire.Response{Code: 200, BodyReader: w.feed}, nil
}

func (w *modelWatch) add(kind string, k kube.Key, o state) {
	if w.r.Namespace == "" || w.r.Namespace == k.Namespace {
		w.pending = append(w.pending, event(kind, string(o.json(w.r))))
	}
}

// deliver sends up to n events to each watch that pick chooses. A negative n stands for all.
func (s *recordingServer) deliver(n int, pick func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		if !pick() {
			continue
		}
		for i := 0; len(w.pending) > 0 && i != n; i++ {
			w.feed.add(w.pending[0])
			w.pending = w.pending[1:]
		}
	}
}

func (s *recordingServer) deliverAll() { s.deliver(-1, func() bool { return true }) }

// bookmark puts a bookmark behind the events that were not delivered yet.
func (s *recordingServer) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	for w := range s.watches {
		w.pending = append(w.pending, event("BOOKMARK", fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"}}`, s.version)))
	}
}

// cut ends the watches that pick chooses. If lose is true, the watches cannot be resumed.
func (s *recordingServer) cut(lose bool, pick func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lose {
		s.version++
		s.compacted = s.version
	}
	for w := range s.watches {
		if pick() {
			delete(s.watches, w)
			w.feed.end()
		}
	}
}

// json returns the object in the version and the representation that r asks for.
func (o state) json(r *wire.Request) []byte {
	if r.Representation == wire.MetadataOnly {
		b, _ := kube.Marshal(map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Metadata})
		return b
	}
	b, _ := kube.Marshal(map[string]any{
		"apiVersion": r.Resource.GroupVersion().String(), "kind": r.Resource.Kind,
		"metadata": o.Metadata, "spec": o.Spec, "status": o.Status,
	})
	return b
}

func refusal(r *wire.Request, code int, reason metav1.StatusReason) error {
	return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: code, Answer: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason),
		Details: &metav1.StatusDetails{Name: r.Name},
	}}
}

// storeLocked stores a new state of an object. A nil state deletes the object, whose former state is
// last.
func (s *recordingServer) storeLocked(k kube.Key, o *state, last state) {
	s.version++
	kind := "MODIFIED"
	switch {
	case o == nil:
		kind = "DELETED"
		delete(s.objects, k)
	default:
		if s.objects[k] == nil {
			kind = "ADDED"
		}
		o.Metadata.Version = strconv.Itoa(s.version)
		s.objects[k] = o
		last = *o
	}
	s.history[k] = append(s.history[k], moment{s.version, o})
	last.Metadata.Version = strconv.Itoa(s.version)
	s.log = append(s.log, logged{s.version, kind, k, last})
	for w := range s.watches {
		w.add(kind, k, last)
	}
}

// serve executes a request, and returns the version after it.
func (s *recordingServer) serve(r *wire.Request) (*wire.Response, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := len(s.log)
	response, err := s.serveLocked(r)
	if err == nil && r.Verb.IsWrite() {
		for _, l := range s.log[from:] {
			s.recordEffect(r, l.key)
		}
	}
	return response, s.version, err
}

// recordEffect records that all past changes of k precede the end of r.
func (s *recordingServer) recordEffect(r *wire.Request, k kube.Key) {
	s.effects[r] = append(s.effects[r], effect{k, s.version})
}

func (s *recordingServer) serveLocked(r *wire.Request) (*wire.Response, error) {
	k := kube.Key{Namespace: r.Namespace, Name: r.Name}
	now := s.objects[k]
	ok := func(o state) (*wire.Response, error) { return &wire.Response{Code: 200, Body: o.json(r)}, nil }
	var body struct {
		Metadata struct {
			Name         string            `json:"name"`
			GenerateName string            `json:"generateName"`
			UID          types.UID         `json:"uid"`
			Version      string            `json:"resourceVersion"`
			Labels       map[string]string `json:"labels"`
			Finalizers   *[]string         `json:"finalizers"`
		} `json:"metadata"`
		Spec   *int `json:"spec"`
		Status *int `json:"status"`
	}
	if len(r.Body) > 0 {
		if err := kube.Unmarshal(r.Body, &body); err != nil {
			panic(err)
		}
	}
	if now == nil && r.Name != "" && !(r.Verb == wire.VerbPatch && r.ContentType == wire.ContentApply && r.Subresource == "") {
		return nil, refusal(r, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	switch {
	case r.Verb == wire.VerbGet:
		return ok(*now)
	case r.Verb == wire.VerbList:
		items := []jsontext.Value{}
		for key, o := range s.objects {
			if r.Namespace == "" || r.Namespace == key.Namespace {
				selector, _ := labels.Parse(r.Query.Get("labelSelector"))
				if selector.Matches(labels.Set(o.Metadata.Labels)) {
					items = append(items, o.json(r))
				}
			}
		}
		b, _ := kube.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
		return &wire.Response{Code: 200, Body: b}, nil
	case r.Verb == wire.VerbDeleteCollection:
		for key, o := range maps.Clone(s.objects) {
			if r.Namespace == key.Namespace {
				s.delete(key, *o)
			}
		}
		return &wire.Response{Code: 200, Body: []byte(`{"kind":"List"}`)}, nil
	case r.Subresource == "eviction":
		s.delete(k, *now)
		return &wire.Response{Code: 201, Body: []byte(`{"kind":"Status","status":"Success"}`)}, nil
	case r.Verb == wire.VerbDelete:
		gone, left := s.delete(k, *now)
		if left || s.answersDeleteWithObject {
			return ok(gone)
		}
		return &wire.Response{Code: 200, Body: fmt.Appendf(nil, `{"kind":"Status","status":"Success","details":{"uid":%q}}`, gone.Metadata.UID)}, nil
	}
	if now != nil && (body.Metadata.UID != "" && body.Metadata.UID != now.Metadata.UID || body.Metadata.Version != "" && body.Metadata.Version != now.Metadata.Version) {
		return nil, refusal(r, http.StatusConflict, metav1.StatusReasonConflict)
	}
	var o state
	switch {
	case r.Verb == wire.VerbCreate:
		s.made++
		k.Name = body.Metadata.Name
		if k.Name == "" {
			k.Name = fmt.Sprint(body.Metadata.GenerateName, s.made)
		}
		if s.objects[k] != nil {
			return nil, refusal(r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		}
		fallthrough
	case now == nil:
		s.made++
		o.Metadata.Name, o.Metadata.Namespace = k.Name, k.Namespace
		o.Metadata.UID = types.UID(fmt.Sprint("uid-", s.made))
	default:
		o = *now
	}
	before := o
	if body.Metadata.Labels != nil {
		o.Metadata.Labels = body.Metadata.Labels
	}
	if body.Metadata.Finalizers != nil {
		o.Metadata.Finalizers = *body.Metadata.Finalizers
	}
	if body.Spec != nil && r.Subresource != "status" {
		o.Spec = *body.Spec
	}
	if body.Status != nil && r.Subresource == "status" {
		o.Status = *body.Status
	}
	if now != nil && string(before.json(r)) == string(o.json(r)) {
		s.recordEffect(r, k)
		return ok(*now) // nothing to do: the version stays
	}
	if o.Metadata.Deletion != "" && len(o.Metadata.Finalizers) == 0 && (o.Metadata.Grace == nil || *o.Metadata.Grace == 0) {
		s.storeLocked(k, nil, o)
		return ok(o) // at its old version
	}
	s.storeLocked(k, &o, o)
	if r.Subresource == "scale" {
		b, _ := kube.Marshal(map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": o.Metadata, "spec": map[string]any{"replicas": o.Spec}})
		return &wire.Response{Code: 200, Body: b}, nil
	}
	return ok(o)
}

// delete deletes an object. It returns its last state, and reports whether the object still exists.
func (s *recordingServer) delete(k kube.Key, o state) (state, bool) {
	if o.Metadata.Deletion != "" {
		return o, true
	}
	if s.hasGracePeriod {
		grace := int64(30)
		o.Metadata.Grace = &grace
	}
	if len(o.Metadata.Finalizers) == 0 && !s.hasGracePeriod {
		s.storeLocked(k, nil, o)
		return o, false
	}
	o.Metadata.Deletion = "2026-01-01T00:00:00Z"
	s.storeLocked(k, &o, o)
	return o, true
}

// kill removes a Pod that is being deleted, as its node does.
func (s *recordingServer) kill(k kube.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[k]; o != nil && o.Metadata.Deletion != "" {
		s.storeLocked(k, nil, *o)
	}
}

// feed is the body of a watch.
type feed struct {
	// changed is signalled when Read has to look again. Its lock guards the rest.
	changed       *sync.Cond
	text          []byte
	ended, closed bool
	onClose       func()
}

func newFeed(onClose func()) *feed {
	return &feed{changed: sync.NewCond(new(sync.Mutex)), onClose: onClose}
}

func (f *feed) add(text string) {
	f.changed.L.Lock()
	defer f.changed.L.Unlock()
	f.text = append(f.text, text...)
	f.changed.Signal()
}

// end ends the watch after its events.
func (f *feed) end() {
	f.changed.L.Lock()
	defer f.changed.L.Unlock()
	f.ended = true
	f.changed.Signal()
}

func (f *feed) Read(p []byte) (int, error) {
	f.changed.L.Lock()
	defer f.changed.L.Unlock()
	for len(f.text) == 0 && !f.ended && !f.closed {
		f.changed.Wait()
	}
	switch {
	case f.closed:
		return 0, io.ErrClosedPipe
	case len(f.text) == 0:
		return 0, io.EOF
	}
	n := copy(p, f.text)
	f.text = f.text[n:]
	return n, nil
}

func (f *feed) Close() error {
	f.changed.L.Lock()
	closed := f.closed
	f.closed = true
	f.changed.Signal()
	f.changed.L.Unlock()
	if !closed {
		f.onClose()
	}
	return nil
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}
