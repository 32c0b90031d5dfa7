package profiles

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// path is where the profiles are. Package net/http/pprof has the same paths. It is not used, because it registers itself
// with [http.DefaultServeMux], and is twice as large.
const path = "/debug/pprof/"

// maxRecording is how long a recording may take.
const maxRecording = 5 * time.Minute

// handlers returns the handlers of the profiles, by their patterns below path.
func handlers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"{$}":     serveNames,
		"{name}":  serveProfile,
		"profile": serveRecording(30*time.Second, pprof.StartCPUProfile, pprof.StopCPUProfile),
		"trace":   serveRecording(time.Second, trace.Start, trace.Stop),
	}
}

// serveNames answers with the names of the profiles, and how many samples each has.
func serveNames(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "profile?seconds=30\ntrace?seconds=1")
	for _, p := range pprof.Profiles() {
		fmt.Fprintln(w, p.Name(), p.Count())
	}
}

// serveProfile answers with a profile of what is there now. With ?debug=1 the answer is text, and with ?gc=1 a garbage
// collection comes first.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	profile := pprof.Lookup(r.PathValue("name"))
	if profile == nil {
		http.Error(w, "there is no profile of that name: "+path+" has the names", http.StatusNotFound)
		return
	}
	if r.FormValue("gc") == "1" {
		runtime.GC()
	}
	debug, _ := strconv.Atoi(r.FormValue("debug")) // without a number the answer is for go tool pprof
	setType(w, debug > 0)
	_ = profile.WriteTo(w, debug) // it fails only if the client has gone
}

// serveRecording returns a handler that records for the seconds of ?seconds, or for a default time. Two recordings of
// one kind cannot run at a time.
func serveRecording(seconds time.Duration, start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := seconds
		if text := r.FormValue("seconds"); text != "" {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n > 0 && n <= maxRecording.Seconds()) {
				http.Error(w, fmt.Sprintf("seconds is %q: give a number up to %g", text, maxRecording.Seconds()), http.StatusBadRequest)
				return
			}
			d = time.Duration(n * float64(time.Second))
		}
		// An answer may otherwise take 30 seconds.
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d + 30*time.Second)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		setType(w, false)
		if err := start(w); err != nil {
			setType(w, true)
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer stop()
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
}

// setType sets the headers of an answer.
func setType(w http.ResponseWriter, isText bool) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "application/octet-stream")
	if isText {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
}
