package fakeserver

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/kube/wire"
)

// hub answers lists and watches, and sends changes to the open watches.
type hub struct {
	// mu is the lock of the server. It guards the hub, the streams and their watches.
	mu    *sync.Mutex
	store *store
	// history holds the changes after the version compacted, oldest first.
	history   []change
	compacted int
	streams   map[StreamID]*Stream
	// rests holds the rest of each list that was answered in part, by its token.
	rests map[string]listRest
	// tokenCount counts the tokens so far. So no two tokens are the same.
	tokenCount int
	// bookmarkPeriod is the time between two bookmarks of a watch. It is 0 if there are none.
	bookmarkPeriod        time.Duration
	refusesExpiredWatches bool
}

// newHub returns a hub with a new store, whose changes it sends.
func newHub(mu *sync.Mutex) *hub {
	h := &hub{mu: mu, streams: make(map[StreamID]*Stream), rests: make(map[string]listRest)}
	h.store = newStore(h.recordChange)
	return h
}

// recordChange adds a change to the history, and sends it to the watches.
func (h *hub) recordChange(c change) {
	h.history = append(h.history, c)
	for _, stream := range h.streams {
		for w := range stream.watches {
			w.send(&h.history[len(h.history)-1])
		}
	}
}

// forgetHistory forgets the history, and the rests of lists.
func (h *hub) forgetHistory() {
	h.compacted, h.history = h.store.version, nil
	clear(h.rests)
}

// cutWatches breaks the connections of all open watches.
func (h *hub) cutWatches() {
	for _, stream := range h.streams {
		stream.cutLocked(errReset)
	}
}

// sortedStreams returns the streams in a fixed order.
func (h *hub) sortedStreams() []*Stream {
	return slices.SortedFunc(maps.Values(h.streams), func(a, b *Stream) int { return a.ID.compare(b.ID) })
}

// stream returns the stream with an identity, and makes it if there is none.
func (h *hub) stream(id StreamID) *Stream {
	if selector, err := labels.Parse(id.LabelSelector); err == nil {
		id.LabelSelector = selector.String()
	}
	stream := h.streams[id]
	if stream == nil {
		stream = &Stream{hub: h, ID: id, watches: make(map[*watch]bool)}
		h.streams[id] = stream
	}
	return stream
}

func (h *hub) watch(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	selected, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	stream := h.stream(streamOf(r))
	if err := stream.refusalLocked(r); err != nil {
		return nil, err
	}
	from := 0
	if v := r.Query.Get("resourceVersion"); v != "" {
		if from, err = strconv.Atoi(v); err != nil || from < 0 {
			return nil, serverError(r, fmt.Sprintf("Invalid resource version %q", v))
		}
	}
	list := r.Query.Get("sendInitialEvents") == "true"
	if list && r.Query.Get("resourceVersionMatch") == "" {
		return nil, invalidOptions(r, "ListOptions", metav1.CauseTypeForbidden, "resourceVersionMatch")
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{
		stream: stream, selection: selected, from: from, wake: make(chan struct{}, 1), closed: ctx.Done(), close: cancel,
	}
	if !list && from > 0 && (from < h.compacted || stream.isExpired) {
		stream.isExpired = false
		e := refusalOf(r, http.StatusGone, metav1.StatusReasonExpired,
			fmt.Sprintf("too old resource version: %d (%d)", from, h.compacted))
		if h.refusesExpiredWatches {
			cancel()
			return nil, e
		}
		w.add("ERROR", encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"metadata": map[string]any{}, "code": http.StatusGone, "reason": "Expired", "message": e.Answer.Message}))
		w.hasEnded = true
		stream.watches[w] = true
		return &wire.Response{Code: http.StatusOK, BodyReader: w, Pings: true}, nil
	}
	if list || from == 0 {
		for _, o := range h.store.sorted() {
			if selected.matches(o) {
				w.add("ADDED", o.bytes(stream.ID.Representation))
			}
		}
		w.from = h.store.version
	}
	if list {
		w.add("BOOKMARK", listEnd(r, h.store.version))
	}
	stream.watches[w] = true
	for i := range h.history {
		w.send(&h.history[i])
	}
	if seconds, err := strconv.Atoi(r.Query.Get("timeoutSeconds")); err == nil {
		w.timers = append(w.timers, time.AfterFunc(time.Duration(seconds)*time.Second, func() {
			stream.change(func() { w.hasEnded = true })
		}))
	}
	if period := h.bookmarkPeriod; period > 0 && r.Query.Get("allowWatchBookmarks") == "true" {
		var timer *time.Timer
		timer = time.AfterFunc(period, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if stream.watches[w] {
				w.bookmark()
				timer.Reset(period)
			}
		})
		w.timers = append(w.timers, timer)
	}
	return &wire.Response{Code: http.StatusOK, BodyReader: w, Pings: true}, nil
}

// listEnd returns the object of the bookmark at the end of a streaming list.
func listEnd(r *wire.Request, version int) []byte {
	metadata := map[string]any{
		"resourceVersion": strconv.Itoa(version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
	}
	return encode(map[string]any{
		"apiVersion": r.Resource.GroupVersion().String(), "kind": r.Resource.Kind, "metadata": metadata,
	})
}

// tokenPattern matches the tokens of pages.
var tokenPattern = regexp.MustCompile(`^\d+-\d+-\d+$`)

// listRest is the rest of a list that was answered in part.
type listRest struct {
	version int
	items   []*object
}

func (h *hub) list(r *wire.Request) (*wire.Response, error) {
	selected, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	if err := h.stream(streamOf(r)).refusalLocked(r); err != nil {
		return nil, err
	}
	v, err := strconv.Atoi(cmp.Or(r.Query.Get("resourceVersion"), "0"))
	if err != nil || v < 0 {
		return nil, badRequest(r, fmt.Sprintf("Invalid resource version %q", r.Query.Get("resourceVersion")))
	}
	if v > h.store.version {
		e := refusalOf(r, http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			fmt.Sprintf("Too large resource version: %d, current: %d", v, h.store.version))
		e.Answer.Details.Causes = []metav1.StatusCause{
			{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
		}
		e.Answer.Details.RetryAfterSeconds, e.RetryAfter = 1, time.Second
		return nil, e
	}
	page := listRest{version: h.store.version}
	if token := r.Query.Get("continue"); token != "" {
		var ok bool
		if page, ok = h.rests[token]; !ok {
			if !tokenPattern.MatchString(token) {
				return nil, badRequest(r, "continue key is not valid")
			}
			return nil, refusalOf(r, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old")
		}
		delete(h.rests, token)
	} else {
		for _, o := range h.store.sorted() {
			if selected.matches(o) {
				page.items = append(page.items, o)
			}
		}
	}
	metadata := map[string]any{"resourceVersion": strconv.Itoa(page.version)}
	if limit, err := strconv.Atoi(r.Query.Get("limit")); err == nil && limit > 0 && limit < len(page.items) {
		h.tokenCount++
		token := fmt.Sprintf("%d-%d-%d", page.version, h.tokenCount, len(page.items))
		h.rests[token] = listRest{page.version, page.items[limit:]}
		metadata["continue"] = token
		metadata["remainingItemCount"] = len(page.items) - limit
		page.items = page.items[:limit]
	}
	apiVersion, kind := r.Resource.GroupVersion().String(), r.Resource.Kind+"List"
	if r.Representation == wire.MetadataOnly {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"apiVersion":%q,"kind":%q,"metadata":%s,"items":[`, apiVersion, kind, encode(metadata))
	for i, o := range page.items {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(o.bytes(r.Representation))
	}
	body.WriteString("]}")
	return &wire.Response{Code: http.StatusOK, Body: body.Bytes()}, nil
}
