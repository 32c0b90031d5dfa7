package dev

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// The page of the operator has one address for the session. While no operator runs, the browser learns so and comes again.
func TestLivePageOfTheOperator(t *testing.T) {
	t.Parallel()
	p, err := newLivePage(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// ask returns the answer to a request for a path, with this header Host.
	ask := func(host, path string) (code int, text string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, "http://"+p.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if address := p.takeNewAddress(); address != "" {
		t.Errorf("without an operator the address is %q", address)
	}
	if code, text := ask(p.address, "/live-page"); code != http.StatusServiceUnavailable || !strings.Contains(text, `http-equiv="refresh"`) {
		t.Errorf("without an operator: %d %s", code, text)
	}
	if got := p.environment(); len(got) != 1 || got[0] != livePageVariable+"="+p.socket {
		t.Errorf("the environment is %q", got)
	}

	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan struct{})
	operator := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/live-page/events" {
			fmt.Fprint(w, "the page at "+r.URL.RequestURI())
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = operator.Serve(listener) }()
	t.Cleanup(func() { operator.Close(); <-served })
	if got, want := p.takeNewAddress(), "http://"+p.address+"/live-page"; got != want {
		t.Errorf("the address is %q, want %q", got, want)
	}
	if again := p.takeNewAddress(); again != "" {
		t.Errorf("the address is printed twice: %q", again)
	}
	_, port, _ := net.SplitHostPort(p.address)
	for _, test := range []struct {
		host, path string
		code       int
		want       string
	}{
		{p.address, "/live-page?kind=Widget", 200, "the page at /live-page?kind=Widget"},
		{"localhost:" + port, "/live-page", 200, "the page at /live-page"},
		{"evil.example:" + port, "/live-page", 403, ""},
		{"evil.example", "/live-page/events", 403, ""},
		{p.address, "/", 302, ""},
	} {
		if code, text := ask(test.host, test.path); code != test.code || test.want != "" && text != test.want {
			t.Errorf("%s%s: %d %s", test.host, test.path, code, text)
		}
	}
	// An event is there when the operator has sent it, and not only at the end of the answer.
	response, err := client.Get("http://" + p.address + "/live-page/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i := range 2 {
		if !lines.Scan() || lines.Text() != fmt.Sprint("data: ", i) {
			t.Fatalf("the event %d is %q", i, lines.Text())
		}
		lines.Scan()
		next <- struct{}{}
	}
}
