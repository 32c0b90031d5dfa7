package admission

import (
	"io"
	"net/http"
	"strings"
)

// probePrefix is the beginning of the paths of probes. The name of the probe follows.
const probePrefix = "/probe/"

// ProbePath returns the path of the calls of a probe.
func ProbePath(name string) string { return probePrefix + name }

// Prober allows the calls of probes, and reports them. It passes all other calls on. A test probes before it makes
// objects, because an API server calls a webhook only about a second after its entry was written. A Prober is safe for
// concurrent use.
type Prober struct {
	next http.Handler
	// seen gets the name of the probe of each call. A name is dropped if nobody has read the last ones.
	seen chan string
}

// NewProber returns a Prober that passes calls on to next.
func NewProber(next http.Handler) *Prober { return &Prober{next, make(chan string, 8)} }

// Seen returns a channel with the names of the probes of the calls.
func (p *Prober) Seen() <-chan string { return p.seen }

// ServeHTTP answers a call.
func (p *Prober) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, isProbe := strings.CutPrefix(r.URL.Path, probePrefix)
	if !isProbe {
		p.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	var review *request
	if err == nil {
		review, err = parseRequest(body)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	select {
	case p.seen <- name:
	default:
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(allowedAnswer().encode(review.uid, nil)) // an API server that is gone repeats nothing
}
