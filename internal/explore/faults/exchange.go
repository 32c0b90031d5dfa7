package faults

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/access/apirequest"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// Request is a request of a program.
type Request struct {
	// Point names the request. Its resource is empty if the path does not name a resource.
	Point   schedule.Point
	Session string
	// Namespace and Name are not normalized. Name is empty for lists and creates without a name.
	Namespace, Name string
	Path, UserAgent string
	// Code is the HTTP status that the program received. It is 0 before the answer, and if there is no
	// answer.
	Code int
	// Fault is the fault that was armed for the request. It is empty if there was none.
	Fault schedule.Kind
	// OutOfBounds is true for a write that was refused because it was outside of the run's namespace.
	OutOfBounds bool
	// ClusterScoped is true for a write of an object that is in no namespace.
	ClusterScoped bool
	// Began is when the request came. Sent is when the proxy sent the request on to the server, or zero if it
	// did not. Ended is when all of the answer was forwarded, and zero until then.
	Began, Sent, Ended time.Time
	// Version is the resource version of the object in the server's answer to a write that was carried
	// out. It is empty if the answer has no object, such as the answer to most deletions.
	Version string
	// Holder and LeaseDuration are fields of the Lease in the answer to a write of a Lease. Holder is empty
	// if nobody holds the Lease.
	Holder        string
	LeaseDuration time.Duration
}

// String returns the request in short, such as: patch deployments.apps/status default/web.
func (r Request) String() string {
	what := r.Point.Resource
	if what == "" {
		what = r.Path
	}
	if r.Point.Subresource != "" {
		what += "/" + r.Point.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", r.Point.Verb, what, r.Namespace, r.Name)
}

// Requests returns all requests so far, in the order in which they came. Requests of sessions that
// were cut off before are not included.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Request, len(p.exchanges))
	for i, e := range p.exchanges {
		all[i] = e.Request
	}
	return all
}

// Activity is the activity of a proxy at one moment. Requests and events of Leases and Events do not count.
type Activity struct {
	// InFlight counts the requests that have not ended. Watches and requests for logs do not
	// count.
	InFlight int
	// LastRequest is when a request that counts began or ended last, or a watch began.
	LastRequest time.Time
	// LastEvent is when a watch delivered an event last.
	LastEvent time.Time
	// Held counts the events that faults hold.
	Held int
	// StreamsBehind counts the watches with events that the program has not received.
	StreamsBehind int
}

// Activity returns the present activity.
func (p *Proxy) Activity() Activity {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := Activity{LastRequest: p.lastRequest, LastEvent: p.lastEvent}
	for _, s := range p.sessions {
		for e := range s.open {
			if e.isAwaited() {
				a.InFlight++
			}
		}
	}
	for s := range p.streams {
		if s.exchange.isBackground() {
			continue
		}
		a.Held += s.heldLocked()
		if s.isDelivering || len(s.queue) > 0 {
			a.StreamsBehind++
		}
	}
	return a
}

// exchange is a request and what the proxy does with it. Request and fault are guarded by the
// proxy's mutex. The other fields do not change after [Proxy.begin].
type exchange struct {
	Request
	session   *Session
	parsed    apirequest.Request
	selection selection
	// isStreamingList is true for a watch that begins with all objects.
	isStreamingList bool
	// fault is the fault at the point of the request, or nil.
	fault *Armed
	// expires is true for a watch that is answered with 410.
	expires bool
	// past is the fault that shows the past to the request, or nil.
	past *Armed
	// pastGet is true for a get that is answered with an object of the past.
	pastGet bool
	// refusesStreaming is true for a streaming list that is refused.
	refusesStreaming bool
}

// exchangeKey is the key of the exchange in the context of a request.
type exchangeKey struct{}

// selection identifies the objects of a list or a watch.
type selection struct {
	session          *Session
	path             string
	labels, fields   string
	isOnlyOfMetadata bool
}

func newExchange(session *Session, r *http.Request) *exchange {
	query := r.URL.Query()
	e := &exchange{session: session, parsed: apirequest.Parse(r), isStreamingList: query.Get("sendInitialEvents") == "true"}
	e.selection = selection{
		session: session, path: r.URL.Path, labels: query.Get("labelSelector"), fields: query.Get("fieldSelector"),
		isOnlyOfMetadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
	e.Request = Request{
		Session: session.name, Namespace: e.parsed.Namespace, Name: e.parsed.Name,
		Path: r.URL.Path, UserAgent: r.UserAgent(),
	}
	return e
}

// isAboutObjects reports whether the request is about objects of a resource, and not about logs or
// a connection of another protocol.
func (e *exchange) isAboutObjects() bool {
	switch e.parsed.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return false
	}
	return e.parsed.Resource != ""
}

// isStored reports whether the server changes something if it carries the request out.
func (e *exchange) isStored() bool {
	return e.parsed.Resource != "" && e.parsed.Verb.IsWrite() && !IsReview(e.parsed.Resource)
}

// isBackground reports whether the request is about objects that change all the time.
func (e *exchange) isBackground() bool {
	switch e.parsed.Resource {
	case leases, "events", "events.events.k8s.io":
		return true
	}
	return false
}

// isAwaited reports whether the request must end before its program is at rest.
func (e *exchange) isAwaited() bool {
	return e.parsed.Verb != kube.VerbWatch && !e.isBackground() && (e.isAboutObjects() || e.parsed.Resource == "")
}

// begin records a request, and decides which faults happen to it. It changes the query of a
// request that sees the past. It returns how long the request is delayed, and reports whether its
// session is connected.
func (p *Proxy) begin(e *exchange, c change, query url.Values, cancel context.CancelFunc) (time.Duration, bool) {
	point := schedule.Point{Verb: string(e.parsed.Verb), Resource: e.parsed.Resource, Subresource: e.parsed.Subresource}
	if e.Name == "" && e.parsed.Verb == kube.VerbCreate {
		e.Name = c.objectName()
	}
	if e.Name != "" {
		point.Name = p.options.Normalize(e.Name)
	}
	if e.isAboutObjects() && e.parsed.Verb.IsWrite() {
		m := mask{namespace: p.options.Namespace, normalize: p.options.Normalize, isSecret: e.parsed.Resource == "secrets"}
		point.ChangeHash = m.hash(c)
	}
	e.ClusterScoped = e.isStored() && e.Namespace == "" && query.Get("dryRun") == ""

	p.mu.Lock()
	defer p.mu.Unlock()
	if e.session.cutOff {
		return 0, false
	}
	e.session.open[e] = cancel
	p.exchanges = append(p.exchanges, e)
	e.Began = time.Now()
	if !e.isBackground() {
		p.lastRequest = e.Began
	}
	point.Step = p.step
	p.occurrences[point]++
	point.Occurrence = p.occurrences[point]
	e.Point = point
	if e.OutOfBounds = p.isOutOfBoundsLocked(e); e.OutOfBounds || !e.isAboutObjects() {
		return p.delay, true
	}
	if e.fault = p.faultAtLocked(point); e.fault != nil {
		e.Fault, e.fault.session = e.fault.fault.Kind, e.session
	}
	p.expireLocked(e, query)
	p.showPastLocked(e, query)
	return p.delay, true
}

// recordAnswer records the status that the program receives.
func (p *Proxy) recordAnswer(e *exchange, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Code = code
}

// end records that an exchange is over.
func (p *Proxy) end(e *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(e.session.open, e)
	e.Ended = time.Now()
	if e.isAwaited() {
		p.lastRequest = e.Ended
	}
}

// acceptJSON returns the forms in a header Accept that are JSON and not a table. It returns JSON if
// there are no such forms.
func acceptJSON(accept string) string {
	var forms []string
	fallback := kube.ContentJSON
	for form := range strings.SplitSeq(accept, ",") {
		form = strings.TrimSpace(form)
		media, parameters, err := mime.ParseMediaType(form)
		if err != nil || parameters["as"] == "Table" {
			continue
		}
		if media == kube.ContentJSON || media == "*/*" || media == "application/*" {
			forms = append(forms, form)
		} else if as := parameters["as"]; strings.HasPrefix(as, "PartialObjectMetadata") {
			fallback = fmt.Sprintf("%s;as=%s;g=meta.k8s.io;v=v1", kube.ContentJSON, as)
		}
	}
	if forms == nil {
		return fallback
	}
	return strings.Join(forms, ",")
}
