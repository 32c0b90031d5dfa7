package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// gadgetPart returns a controller of gadgets that does nothing.
func gadgetPart() Part {
	return controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) { return controller.Done(), nil })
}

// The page shows the contents of objects. So it is served only where the reader is checked, or on loopback, and only if the
// program has the part.
func TestWhereTheLivePageIsServed(t *testing.T) {
	t.Parallel()
	with := Program{Parts: func() ([]Part, error) { return []Part{gadgetPart(), SecureListener(), LivePage()}, nil }}
	without := Program{Parts: func() ([]Part, error) { return []Part{gadgetPart(), SecureListener()}, nil }}
	for _, test := range []struct {
		program Program
		args    string
		status  int
		want    string
	}{
		{with, "--live-page", 2, "--live-page shows the contents of objects: give it --listen-secure"},
		{with, "--live-page --listen :8080", 2, "--listen with a loopback address"},
		{with, "--live-page --listen 10.0.0.1:8080", 2, "--listen with a loopback address"},
		{with, "--live-page --listen-probes 127.0.0.1:8080", 2, "give it --listen-secure"},
		{without, "--live-page --listen 127.0.0.1:8080", 1, "add operator.LivePage() to its parts"},
		{without, "permissions --live-page --listen-secure :8443", 1, "add operator.LivePage() to its parts"},
		{with, "permissions --live-page --listen-secure :8443", 0, ""},
		{with, "permissions --live-page --listen localhost:8080", 0, ""},
		{with, "manifests --image i:1 --live-page", 0, ""},
		{with, "manifests --image i:1 --live-page --watch-namespace a", 1, "--live-page in a cluster needs --listen-secure"},
		{with, "permissions --live-page --listen [::1]:8080", 0, ""},
	} {
		status, _, stderr := callProgram(strings.Fields(test.args), test.program)
		if status != test.status || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: status %d, want %d with %q: %s", test.args, status, test.status, test.want, stderr)
		}
	}
	for name, program := range map[string]Program{"true": with, "false": without} {
		if _, help, _ := callProgram([]string{"--help"}, program); fmt.Sprint(strings.Contains(help, "--live-page")) != name {
			t.Errorf("with the part %s, the help is:\n%s", name, help)
		}
	}
}

// A program with the page ends at once, also while somebody reads the page.
func TestLivePageFromStartToEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := gadgetServer{open: make(chan struct{})}
	close(server.open)
	listener := anywhere(t)
	page, err := programLivePageCode{}.openLivePage(t.Context(), livePageSettings{
		isOn: true, isLoopback: true, socket: filepath.Join(t.TempDir(), "page"), program: "gadgets", log: slog.Default(),
	})
	if err != nil {
		t.Fatal(err)
	}
	part := controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) {
		return controller.RequeueAfter(time.Hour), errors.New("a <b>bad</b> day")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- runParts(ctx, kube.NewClientFromHandler(server), environment{log: slog.Default(), listeners: listeners{pages: listener}, livePage: page}, []Part{part, LivePage()})
	}()
	eventually(t, func() error {
		code, text := ask(t, listener.Addr(), "/live-page?name=ON&cause=gadget")
		for _, want := range []string{"a &lt;b&gt;bad&lt;/b&gt; day", "Gadget", "default/", "gadgets.example.com", "no leader election", "again in"} {
			if code != 200 || !strings.Contains(text, want) {
				return fmt.Errorf("%d without %s:\n%s", code, want, text)
			}
		}
		return nil
	})
	if code, text := ask(t, listener.Addr(), "/live-page?kind=Other"); code != 200 || strings.Contains(text, `class="row`) {
		t.Errorf("another kind: %d %s", code, text)
	}
	if code, text := ask(t, listener.Addr(), "/metrics"); code != 200 || !strings.Contains(text, `yare_reconciles_total{controller="gadget.example.com",result="error"}`) && !strings.Contains(text, `result="error"} 1`) {
		t.Errorf("the metrics do not count any more: %d %s", code, text)
	}
	// A web site that names this machine by a name of its own reads nothing.
	request, err := http.NewRequest(http.MethodGet, "http://"+listener.Addr().String()+"/live-page", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example"
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("for another host the answer is %s", response.Status)
	}
	// A reader of events is there until the end.
	response, err = client.Get("http://" + listener.Addr().String() + "/live-page/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	began := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	page.end()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// Without the flag and outside of yare dev the part does nothing.
func TestLivePageIsOffByDefault(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := livePageSettings{program: "gadgets", log: slog.New(slog.NewTextHandler(&log, nil))}
	if page, isOpen, err := openLivePageService(t.Context(), []Part{LivePage()}, s); isOpen || err != nil {
		t.Errorf("there is a page: %v, %v", page, err)
	}
}
