package follow_test

import (
	"context"
	"errors"
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

	"github.com/yare-go/yare/kube/wire"
)

// model is an API server in memory, with everything that can go wrong with one. It keeps
// all states that it ever had, so that what was published can be compared with them.
type model struct {
	mu      sync.Mutex
	rng     *rand.Rand
	version int
	uids    int
	state   map[string]modelObject
	hidden  map[string]modelObject // those that have left the selector
	history []map[string]modelObject
	log     []modelEvent

	compacted int // what happened up to here is forgotten
	expired   int // continue tokens up to here are too old
	streams   map[*modelStream]bool
	noStreams bool // streaming lists are refused
	failures  []failure
	breakList bool // the next list breaks off
	restores  int  // how often the server was restored from a backup
}

type modelObject struct {
	name, uid string
	version   int
}

func (o modelObject) json() string { return object(o.name+"/"+o.uid, o.version) }

type modelEvent struct {
	kind    string
	object  modelObject
	version int
}

// failure returns the error that a request gets in place of an answer.
type failure func(r *wire.Request) error

func newModel(seed uint64) *model {
	m := &model{
		rng: rand.New(rand.NewPCG(seed, 1)), version: 1, state: map[string]modelObject{},
		hidden: map[string]modelObject{}, streams: map[*modelStream]bool{},
	}
	m.history = []map[string]modelObject{{}, {}}
	return m
}

// commitLocked makes a change the next version, and wakes all watches.
func (m *model) commitLocked(kind string, o modelObject) {
	m.version++
	o.version = m.version
	if kind == "DELETED" {
		delete(m.state, o.name)
	} else if kind != "" {
		m.state[o.name] = o
	}
	m.history = append(m.history, maps.Clone(m.state))
	if kind == "" {
		return // a change of something else moves the version too
	}
	m.log = append(m.log, modelEvent{kind, o, m.version})
	for s := range m.streams {
		s.wake()
	}
}

// write carries out one change of the object with this name.
func (m *model) write(what int, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, there := m.state[name]
	old, away := m.hidden[name]
	switch {
	case what == 0 && there:
		m.commitLocked("MODIFIED", o)
	case what == 1 && there:
		m.commitLocked("DELETED", o)
	case what == 2 && there: // under the same name comes another
		m.commitLocked("DELETED", o)
		m.create(name)
	case what == 3 && there: // it moves out of the selector
		m.hidden[name] = o
		m.commitLocked("DELETED", o)
	case what == 4:
		m.commitLocked("", modelObject{})
	case there:
	case away && what == 3: // it moves into it again
		delete(m.hidden, name)
		m.commitLocked("ADDED", old)
	default:
		delete(m.hidden, name)
		m.create(name)
	}
}

func (m *model) create(name string) {
	m.uids++
	m.commitLocked("ADDED", modelObject{name: name, uid: fmt.Sprintf("uid%d", m.uids)})
}

// fault lets one thing go wrong.
func (m *model) fault(what int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	each := func(do func(*modelStream)) {
		for s := range m.streams {
			do(s)
			s.wake()
		}
	}
	fail := func(f failure) { m.failures = append(m.failures, f) }
	switch what {
	case 0: // the connections of all watches break
		each(func(s *modelStream) { s.end = errors.New("connection reset by peer") })
	case 1: // the server ends all watches
		each(func(s *modelStream) { s.end = io.EOF })
	case 2: // all watches end in the middle of a frame
		each(func(s *modelStream) { s.tail, s.end = `{"type":"ADDED","object":{"metad`, io.EOF })
	case 3: // all watches bring nothing any more
		each(func(s *modelStream) { s.silent = true })
	case 4: // the version of all watches is too old
		each(func(s *modelStream) { s.tail, s.end = gone().bytes, io.EOF })
	case 5: // all watches end with an error
		each(func(s *modelStream) { s.tail, s.end = frame("ERROR", status(500, "InternalError")).bytes, io.EOF })
	case 6: // the history is forgotten
		m.compacted, m.expired = m.version, m.version
	case 7: // the continue tokens are too old
		m.expired = m.version
	case 8: // all watches bring a bookmark
		each(func(s *modelStream) { s.mark = true })
	case 9: // the next request is to come later
		fail(func(r *wire.Request) error {
			e := statusError(r, http.StatusTooManyRequests, "TooManyRequests")
			e.RetryAfter = 2 * time.Second
			return e
		})
	case 10: // the next request gets an error of the server
		fail(func(r *wire.Request) error { return statusError(r, 500, "InternalError") })
	case 11: // the version of the next request is too old
		fail(func(r *wire.Request) error { return statusError(r, 410, "Expired") })
	case 12: // the next request does not reach the server
		fail(func(r *wire.Request) error {
			return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Err: errors.New("connection refused")}
		})
	case 13: // streaming lists are refused, or served again
		m.noStreams = !m.noStreams
	case 14: // the next paged list breaks off
		m.breakList = true
	}
}

// restore sets the server back by up to ten versions, as from a backup, and restarts it. Its
// version numbers are used again.
func (m *model) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version = max(1, m.version-m.rng.IntN(11))
	m.history = m.history[:m.version+1]
	m.state, m.hidden = maps.Clone(m.history[m.version]), map[string]modelObject{}
	m.log = slices.DeleteFunc(m.log, func(e modelEvent) bool { return e.version > m.version })
	m.compacted, m.expired = min(m.compacted, m.version), min(m.expired, m.version)
	m.restores++
	for s := range m.streams {
		s.end = errors.New("connection reset by peer")
		s.wake()
	}
	m.breakList = false
	m.failures = []failure{func(r *wire.Request) error {
		return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Err: errors.New("connection refused")}
	}}
}

// restoreCount returns how often the server was restored.
func (m *model) restoreCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restores
}

// heal ends all faults except the faults that a client has to notice by itself.
func (m *model) heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures, m.breakList = nil, false
}

func (m *model) now() map[string]modelObject {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.state)
}

// hadState reports whether the server was in this state at version from or later, and returns
// that version.
func (m *model) hadState(state map[string]modelObject, from int) (at int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := from; at < len(m.history); at++ {
		if maps.Equal(m.history[at], state) {
			return at, true
		}
	}
	return 0, false
}

func (m *model) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	m.mu.Lock()
	pause := time.Duration(m.rng.IntN(50)) * time.Millisecond
	m.mu.Unlock()
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failures) > 0 {
		next := m.failures[0]
		m.failures = m.failures[1:]
		return nil, next(r)
	}
	if r.Verb == wire.VerbList {
		return m.page(r)
	}
	return m.watch(r)
}

// page answers a list, in pages of two, from the state at its first page.
func (m *model) page(r *wire.Request) (*wire.Response, error) {
	at, from := m.version, ""
	if token := r.Query.Get("continue"); token != "" {
		version, after, _ := strings.Cut(token, "/")
		at, _ = strconv.Atoi(version)
		from = after
		if at <= m.expired && at < m.version || at > m.version || m.breakList {
			m.breakList = false
			return nil, statusError(r, 410, "Expired")
		}
	}
	var items []string
	next := ""
	selected, isProbe := strings.CutPrefix(r.Query.Get("fieldSelector"), "metadata.name=")
	for _, name := range modelNames {
		o, there := m.history[at][name]
		if !there || name <= from || isProbe && name != selected {
			continue
		}
		if len(items) == 2 {
			next = fmt.Sprintf("%d/%s", at, from)
			break
		}
		items, from = append(items, o.json()), name
	}
	return page(strconv.Itoa(at), next, items...)(r)
}

// modelNames are the names of all objects of the model, in the order of lists.
var modelNames = []string{"a", "b", "c", "d", "e", "f"}

func (m *model) watch(r *wire.Request) (*wire.Response, error) {
	s := &modelStream{model: m, woken: make(chan struct{}, 1), closed: make(chan struct{})}
	seconds, _ := strconv.Atoi(r.Query.Get("timeoutSeconds"))
	s.until = time.Now().Add(time.Duration(seconds) * time.Second)
	if r.Query.Get("sendInitialEvents") == "true" {
		if m.noStreams {
			return nil, statusError(r, 422, "Invalid")
		}
		// In no order of versions, and in no order of names.
		for _, o := range m.state {
			s.initial = append(s.initial, o)
		}
		s.listing, s.at = true, m.version
		s.before = m.rng.IntN(8)
		s.early = m.rng.IntN(2) == 0
		if m.breakList {
			m.breakList = false
			s.breakAt = 1 + m.rng.IntN(3)
		}
	} else {
		s.at, _ = strconv.Atoi(r.Query.Get("resourceVersion"))
		if s.at < m.compacted {
			if m.rng.IntN(2) == 0 {
				return nil, statusError(r, 410, "Expired")
			}
			s.tail, s.end = gone().bytes, io.EOF
		}
	}
	s.listedAt = s.at
	m.streams[s] = true
	return &wire.Response{Code: 200, BodyReader: s}, nil
}

// modelStream is one watch.
type modelStream struct {
	model  *model
	woken  chan struct{}
	closed chan struct{}
	once   sync.Once
	rest   string
	until  time.Time

	// What follows is the model's, under its lock.
	initial  []modelObject
	listing  bool
	listedAt int
	at       int // the version of what was sent last
	before   int // how many events may come before the end mark of the list
	early    bool
	breakAt  int
	silent   bool
	mark     bool
	tail     string
	end      error
}

func (s *modelStream) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *modelStream) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.model.mu.Lock()
		defer s.model.mu.Unlock()
		delete(s.model.streams, s)
	})
	return nil
}

func (s *modelStream) Read(p []byte) (int, error) {
	for s.rest == "" {
		text, pause, err := s.next()
		if err != nil {
			return 0, err
		}
		s.rest = text
		var timer <-chan time.Time
		var woken <-chan struct{}
		if text != "" {
			timer = time.After(pause)
		} else {
			timer, woken = time.After(time.Until(s.until)), s.woken
		}
		select {
		case <-timer:
		case <-woken:
		case <-s.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next returns what is sent next, or no text if there is nothing to send.
func (s *modelStream) next() (text string, pause time.Duration, err error) {
	m := s.model
	m.mu.Lock()
	defer m.mu.Unlock()
	pause = time.Duration(m.rng.IntN(40)) * time.Millisecond
	switch {
	case s.silent:
		// Not even its end is sent.
		s.until = time.Now().Add(100 * time.Hour)
		return "", 0, nil
	case s.tail != "":
		text, s.tail = s.tail, ""
		return text, pause, nil
	case s.end != nil:
		return "", 0, s.end
	case !time.Now().Before(s.until):
		return "", 0, io.EOF
	case s.breakAt == 1:
		return "", 0, []error{io.EOF, errors.New("connection reset by peer")}[m.rng.IntN(2)]
	}
	s.breakAt--
	if len(s.initial) > 0 {
		o := s.initial[0]
		s.initial = s.initial[1:]
		return added(o.json()).bytes, pause, nil
	}
	event := s.event()
	if s.listing && (event == nil || s.before == 0) {
		s.listing = false
		at := s.at
		if s.early { // and so, what was sent after the snapshot comes again after a resume
			at = s.listedAt
		}
		return endOfList(strconv.Itoa(at)).bytes, pause, nil
	}
	if event != nil {
		s.before--
		s.at = event.version
		return frame(event.kind, event.object.json()).bytes, pause, nil
	}
	if s.mark && m.version > s.at { // a server sends no bookmark up to the version that was asked for
		s.mark, s.at = false, m.version
		return bookmark(strconv.Itoa(s.at)).bytes, pause, nil
	}
	return "", 0, nil
}

func (s *modelStream) event() *modelEvent {
	for i, e := range s.model.log {
		if e.version > s.at {
			return &s.model.log[i]
		}
	}
	return nil
}
