package dev

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// livePageVariable is the environment variable by which an operator with the part of package livepage learns the socket
// on which it serves its page. Package livepage reads it.
const livePageVariable = "YARE_LIVE_PAGE_SOCKET"

// absentPage is what a browser shows while no operator runs. It loads itself again.
const absentPage = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2"><meta name="color-scheme" content="light dark"><title>yare dev</title></head>` +
	`<body><p>The operator is not running. This page looks again every two seconds.</p></body></html>`

// livePage passes the requests of a browser on to the page of the operator. Its address stays the same for the whole
// session. It takes requests from this machine only.
type livePage struct {
	*forwarder
	// isShown is true once the address was printed.
	isShown bool
}

// newLivePage starts to serve. The socket lies in folder.
func newLivePage(folder string) (*livePage, error) {
	f, err := newForwarder(filepath.Join(folder, "page"))
	if err != nil {
		return nil, err
	}
	p := &livePage{forwarder: f}
	f.start(p.onlyForThisMachine, &http.Transport{MaxIdleConns: 4, IdleConnTimeout: 10 * time.Second, DialContext: f.dial},
		answerAbsence, nil)
	return p, nil
}

// close ends the page. p may be nil.
func (p *livePage) close() {
	if p != nil {
		p.forwarder.close()
	}
}

// environment returns the variable by which the operator learns the socket. p may be nil.
func (p *livePage) environment() []string {
	if p == nil {
		return nil
	}
	return []string{livePageVariable + "=" + p.socket}
}

// takeNewAddress returns the URL of the page once, when an operator has served the page for the first time. It returns
// an empty text in all other calls. p may be nil.
func (p *livePage) takeNewAddress() string {
	if p == nil || p.isShown {
		return ""
	}
	if _, err := os.Stat(p.socket); err != nil {
		return ""
	}
	p.isShown = true
	return "http://" + p.address + "/live-page"
}

// onlyForThisMachine returns next for requests that name the address of the page. A web site could otherwise name this
// machine by a name of its own, and have a browser read the page.
func (p *livePage) onlyForThisMachine(next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(p.address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != p.address && r.Host != "localhost:"+port:
			http.Error(w, "open http://"+p.address+"/live-page", http.StatusForbidden)
		case r.URL.Path == "/":
			http.Redirect(w, r, "/live-page", http.StatusFound)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// answerAbsence answers a request that no operator has taken.
func answerAbsence(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, absentPage) // the client has gone
}
