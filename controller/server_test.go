package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/kube"
)

// server is a small model of an API server: it stores objects of any kind, gives them uids,
// versions and generations, serves streaming lists and watches, and refuses what a real one
// refuses of what these tests do. What servers decide in detail is tested with a real one.
type server struct {
	mu      sync.Mutex
	version int
	uids    int
	objects map[place]object
	feeds   map[*feed]bool
	// history is what was sent, for watches that are taken up again.
	history []change
	// requests are all that came, in order.
	requests []*kube.Request
	// before is asked about each request first; an error is the answer. It is called without
	// the lock.
	before func(*kube.Request) error
	// unsynced are the plurals whose lists do not end.
	unsynced map[string]bool
}

type object = map[string]any

// change is what watches are sent. The last state is that of a removal.
type change struct {
	version             int
	at                  place
	before, after, last object
}

type place struct{ plural, namespace, name string }

func newServer() *server {
	return &server{version: 100, objects: make(map[place]object), feeds: make(map[*feed]bool), unsynced: make(map[string]bool)}
}

func (s *server) client() *kube.Client { return kube.NewClientFromHandler(s) }

// Do serves one request.
func (s *server) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(r); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Verb == kube.VerbWatch {
		return s.watch(r)
	}
	at := place{r.Resource.Plural, r.Namespace, r.Name}
	live, there := s.objects[at]
	switch r.Verb {
	case kube.VerbGet:
		if !there {
			return nil, refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound)
		}
		return answer(live), nil
	case kube.VerbCreate:
		body := decode(r.Body)
		at.name = meta(body)["name"].(string)
		if s.objects[at] != nil {
			return nil, refuse(r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		}
		return answer(s.store(r.Resource, at, body)), nil
	case kube.VerbPatch:
		return s.patch(r, at, live)
	case kube.VerbDelete:
		if !there {
			return nil, refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound)
		}
		if finalizers, _ := meta(live)["finalizers"].([]any); len(finalizers) > 0 {
			now := clone(live)
			meta(now)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			return answer(s.store(r.Resource, at, now)), nil
		}
		s.remove(at)
		return answer(object{"kind": "Status", "details": object{"uid": meta(live)["uid"]}}), nil
	}
	return nil, refuse(r, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
}

func (s *server) patch(r *kube.Request, at place, live object) (*kube.Response, error) {
	var now object
	switch r.ContentType {
	case kube.ContentApply:
		body := decode(r.Body)
		if live == nil {
			if meta(body)["uid"] != nil {
				return nil, refuse(r, http.StatusConflict, metav1.StatusReasonConflict)
			}
			return answer(s.store(r.Resource, at, body)), nil
		}
		if uid := meta(body)["uid"]; uid != nil && uid != meta(live)["uid"] {
			return nil, refuse(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "metadata.uid")
		}
		if v := meta(body)["resourceVersion"]; v != nil && v != meta(live)["resourceVersion"] {
			return nil, refuse(r, http.StatusConflict, metav1.StatusReasonConflict)
		}
		now = merge(clone(live), body, r.Subresource).(object)
	case kube.ContentJSONPatch:
		if live == nil {
			return nil, refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound)
		}
		var operations []struct {
			Op, Path string
			Value    any
		}
		if err := json.Unmarshal(r.Body, &operations); err != nil {
			panic(err)
		}
		now = clone(live)
		for _, o := range operations {
			steps := strings.Split(o.Path[1:], "/")
			parent := now
			for _, step := range steps[:len(steps)-1] {
				parent = parent[step].(object)
			}
			last := steps[len(steps)-1]
			if o.Op == "test" && !reflect.DeepEqual(parent[last], o.Value) {
				return nil, refuse(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			}
			parent[last] = o.Value
		}
		before, _ := meta(live)["finalizers"].([]any)
		after, _ := meta(now)["finalizers"].([]any)
		if meta(live)["deletionTimestamp"] != nil && len(after) > len(before) {
			return nil, refuse(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "metadata.finalizers")
		}
	default:
		return nil, refuse(r, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType)
	}
	if finalizers, _ := meta(now)["finalizers"].([]any); len(finalizers) == 0 && meta(now)["deletionTimestamp"] != nil {
		s.remove(at)
		return answer(now), nil
	}
	return answer(s.store(r.Resource, at, now)), nil
}

// merge applies what body says to what is there.
func merge(live, body any, subresource string) any {
	l, ok := live.(object)
	b, is := body.(object)
	if !ok || !is {
		return body
	}
	for k, v := range b {
		switch {
		case k == "uid" || k == "resourceVersion":
		case (k == "status" || k == "spec") && (k == "status") != (subresource == "status"):
		default:
			l[k] = merge(l[k], v, subresource)
		}
	}
	return l
}

// store puts an object in its place, if it differs from what is there.
func (s *server) store(r kube.Resource, at place, now object) object {
	live, there := s.objects[at]
	if there && reflect.DeepEqual(live, now) {
		return live
	}
	m := meta(now)
	if !there {
		s.uids++
		m["uid"], m["generation"] = fmt.Sprintf("uid-%d", s.uids), 1.0
		m["name"] = at.name
		if at.namespace != "" {
			m["namespace"] = at.namespace
		}
		now["apiVersion"], now["kind"] = r.GroupVersion().String(), r.Kind
	} else if !reflect.DeepEqual(live["spec"], now["spec"]) {
		m["generation"] = m["generation"].(float64) + 1
	}
	s.version++
	m["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[at] = now
	s.send(change{at: at, before: live, after: now})
	return now
}

func (s *server) remove(at place) {
	live := s.objects[at]
	delete(s.objects, at)
	s.version++
	last := clone(live)
	meta(last)["resourceVersion"] = strconv.Itoa(s.version)
	s.send(change{at: at, before: live, last: last})
}

// send shows a change to all watches.
func (s *server) send(c change) {
	c.version = s.version
	s.history = append(s.history, c)
	for f := range s.feeds {
		f.send(c)
	}
}

func (s *server) watch(r *kube.Request) (*kube.Response, error) {
	selector, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	f := &feed{
		server: s, plural: r.Resource.Plural, namespace: r.Namespace, selector: selector,
		metadata: r.Representation == kube.MetadataOnly,
		wake:     make(chan struct{}, 1), closed: make(chan struct{}),
	}
	s.feeds[f] = true
	if seconds, err := strconv.Atoi(r.Query.Get("timeoutSeconds")); err == nil {
		f.timer = time.AfterFunc(time.Duration(seconds)*time.Second, f.end)
	}
	if from, err := strconv.Atoi(r.Query.Get("resourceVersion")); err == nil {
		for _, c := range s.history {
			if c.version > from {
				f.send(c)
			}
		}
		return &kube.Response{Code: http.StatusOK, Stream: f}, nil
	}
	places := slices.SortedFunc(maps.Keys(s.objects), func(a, b place) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, at := range places {
		if o := s.objects[at]; at.plural == f.plural && (f.namespace == "" || at.namespace == f.namespace) && f.matches(o) {
			f.add("ADDED", o)
		}
	}
	f.finish = func() {
		f.add("BOOKMARK", object{"metadata": object{
			"resourceVersion": strconv.Itoa(s.version), "annotations": object{"k8s.io/initial-events-end": "true"},
		}})
	}
	if !s.unsynced[f.plural] {
		f.finish()
	}
	return &kube.Response{Code: http.StatusOK, Stream: f}, nil
}

// sync ends the lists of a plural that do not end.
func (s *server) sync(plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unsynced, plural)
	for f := range s.feeds {
		if f.plural == plural {
			f.finish()
		}
	}
}

// count is how many requests were made that pass, watches apart.
func (s *server) count(pass func(*kube.Request) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if r.Verb != kube.VerbWatch && pass(r) {
			n++
		}
	}
	return n
}

// watches are the streams that were begun.
func (s *server) watches() (streams []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.Verb == kube.VerbWatch && r.Query.Get("resourceVersion") == "" {
			streams = append(streams, strings.TrimSpace(r.Resource.Plural+" "+r.Query.Get("labelSelector")))
		}
	}
	slices.Sort(streams)
	return streams
}

// object is a copy of what is stored, or nil.
func (s *server) object(plural, namespace, name string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[place{plural, namespace, name}]; o != nil {
		return clone(o)
	}
	return nil
}

// feed is the body of a watch.
type feed struct {
	server            *server
	plural, namespace string
	selector          labels.Selector
	metadata          bool
	finish            func()

	mu     sync.Mutex
	frames []byte
	ended  bool
	timer  *time.Timer
	wake   chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (f *feed) matches(o object) bool {
	set := labels.Set{}
	all, _ := meta(o)["labels"].(object)
	for k, v := range all {
		set[k] = v.(string)
	}
	return f.selector.Matches(set)
}

// send shows a change to the watch, if it concerns it.
func (f *feed) send(c change) {
	if f.plural != c.at.plural || f.namespace != "" && f.namespace != c.at.namespace {
		return
	}
	was, is := c.before != nil && f.matches(c.before), c.after != nil && f.matches(c.after)
	switch {
	case !was && is:
		f.add("ADDED", c.after)
	case was && is:
		f.add("MODIFIED", c.after)
	case was && c.last != nil:
		f.add("DELETED", c.last)
	case was:
		f.add("DELETED", c.after)
	}
}

func (f *feed) add(kind string, o object) {
	if f.metadata {
		o = object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o["metadata"]}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames = append(f.frames, encode(object{"type": kind, "object": o})...)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// end ends the watch in good order, as a server does that was asked to after some time.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) Read(p []byte) (int, error) {
	for {
		f.mu.Lock()
		n := copy(p, f.frames)
		f.frames = f.frames[n:]
		ended := f.ended
		f.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		select {
		case <-f.wake:
		case <-f.closed:
			return 0, io.ErrClosedPipe
		}
	}
}

func (f *feed) Close() error {
	f.once.Do(func() {
		close(f.closed)
		if f.timer != nil {
			f.timer.Stop()
		}
		f.server.mu.Lock()
		defer f.server.mu.Unlock()
		delete(f.server.feeds, f)
	})
	return nil
}

func answer(o object) *kube.Response { return &kube.Response{Code: http.StatusOK, Body: encode(o)} }

// refuse is an answer that is an error, about these fields.
func refuse(r *kube.Request, code int, reason metav1.StatusReason, fields ...string) error {
	e := &kube.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: code, Answer: metav1.Status{
		Code: int32(code), Reason: reason, Message: "refused", Details: &metav1.StatusDetails{Name: r.Name},
	}}
	for _, field := range fields {
		e.Answer.Details.Causes = append(e.Answer.Details.Causes, metav1.StatusCause{Field: field})
	}
	return e
}

func meta(o object) object { return o["metadata"].(object) }

func clone(o object) object { return decode(encode(o)) }

func decode(b []byte) (o object) {
	if err := json.Unmarshal(b, &o); err != nil {
		panic(err)
	}
	return o
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
