package yaretest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/access/apirequest"
	"github.com/yare-go/yare/kube"
)

// Request is a request that came through a [Proxy].
type Request struct {
	UserAgent string
	Verb      kube.Verb
	// Resource is the plural name and the group, such as deployments.apps. It is empty if the
	// path is not the path of a resource.
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Path        string
	// Code is the HTTP status of the answer. It is 0 before the answer, and without an answer.
	Code int
	// Began is when the request came. Answered is when the head of the server's answer came.
	// Ended is when all of the answer was forwarded. Answered and Ended are zero until then.
	Began, Answered, Ended time.Time
}

// String returns the request in short, such as: patch deployments.apps/status default/web 200.
func (r Request) String() string {
	what := r.Resource
	if what == "" {
		what = r.Path
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d", r.Verb, what, r.Namespace, r.Name, r.Code)
}

// Requests returns all requests so far, in the order in which they came. Requests that were
// refused because of a cut are included, with the code 0.
func (p *Proxy) Requests() []Request {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	all := make([]Request, len(p.journal.entries))
	for i, e := range p.journal.entries {
		all[i] = e.Request
	}
	return all
}

// Writes returns the requests so far whose verb is a write.
func (p *Proxy) Writes() []Request {
	var writes []Request
	for _, r := range p.Requests() {
		if r.Verb.IsWrite() {
			writes = append(writes, r)
		}
	}
	return writes
}

// Caller is a program and a verb, for [Proxy.Count].
type Caller struct {
	// UserAgent is the program's name, without what follows a slash.
	UserAgent string
	Verb      kube.Verb
}

// Count returns the number of requests so far, by user agent and verb.
func (p *Proxy) Count() map[Caller]int {
	count := make(map[Caller]int)
	for _, r := range p.Requests() {
		agent, _, _ := strings.Cut(r.UserAgent, "/")
		count[Caller{agent, r.Verb}]++
	}
	return count
}

// journal records requests.
type journal struct {
	mu      sync.Mutex
	entries []*entry
}

// entry is a request and, if it is a write, its number, which type fault sets and reads.
type entry struct {
	Request
	write *int
}

func (j *journal) begin(r *http.Request) *entry {
	parsed := apirequest.Parse(r)
	e := &entry{Request: Request{
		UserAgent: r.UserAgent(), Verb: parsed.Verb,
		Resource: parsed.Resource, Subresource: parsed.Subresource, Namespace: parsed.Namespace, Name: parsed.Name,
		Path: r.URL.Path, Began: time.Now(),
	}}
	if e.Verb.IsWrite() {
		e.write = new(int)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	return e
}

func (j *journal) answered(e *entry, code int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Code, e.Answered = code, time.Now()
}

func (j *journal) end(e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Ended = time.Now()
}

func (j *journal) butWatches() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	var rest []Request
	for _, e := range j.entries {
		if e.Verb != kube.VerbWatch {
			rest = append(rest, e.Request)
		}
	}
	return rest
}

// lastButWatches returns the last request that is no watch, and when it was over.
func (j *journal) lastButWatches() (last Request, over time.Time) {
	for _, r := range j.butWatches() {
		end := r.Ended
		if end.IsZero() {
			end = time.Now()
		}
		if !end.Before(over) {
			last, over = r, end
		}
	}
	return last, over
}
