package kube

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/testkit/executable"
	"github.com/yare-go/yare/kube/wire"
)

// newFailingPlugin returns a client whose credential plugin fails while the file broken exists, and a function that returns the
// number of its runs.
func newFailingPlugin(t *testing.T) (c *Client, runner *pluginRunner, broken string, runs func() int) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}`)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	broken, log, plugin := filepath.Join(dir, "broken"), filepath.Join(dir, "log"), filepath.Join(dir, "plugin")
	text := fmt.Sprintf("#!/bin/sh\necho run >> %s\nsleep 0.1\ntest ! -e %s && echo '%s'\n", log, broken,
		`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}`)
	executable.Write(t, plugin, text)
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := &Config{Host: server.URL, Insecure: true, Timeout: 30 * time.Second,
		Exec: &ExecConfig{Command: plugin, APIVersion: execV1, InteractiveMode: interactiveNever}}
	transport, err := newTransport(config, config.Timeout, warnOnce())
	if err != nil {
		t.Fatal(err)
	}
	c = NewClientFromHandler(retry{next: transport, timeout: config.Timeout})
	return c, transport.roundTripper.exec, broken, func() int {
		data, _ := os.ReadFile(log)
		return strings.Count(string(data), "run")
	}
}

// Bug: a credential plugin that failed was run five times for each request, and for each request that waited.
func TestFailureOfACredentialPlugin(t *testing.T) {
	t.Parallel()
	c, runner, broken, runs := newFailingPlugin(t)
	var mu sync.Mutex
	var passed time.Duration
	runner.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Unix(0, 0).Add(passed)
	}
	moveTime := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		passed += d
	}
	get := func() error {
		_, err := Namespaced[corev1.Pod](c, "default").Get(t.Context(), "web")
		return err
	}
	var requests sync.WaitGroup
	for range 20 {
		requests.Go(func() {
			if err := get(); err == nil || !strings.Contains(err.Error(), "it failed with exit status 1") || !IsUnreachable(err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	requests.Wait()
	if n := runs(); n != 1 {
		t.Errorf("the plugin was run %d times for 20 requests", n)
	}
	wantError(t, get(), "it is run again in 1s")
	moveTime(time.Second)
	wantError(t, get(), "it failed with exit status 1")
	wantError(t, get(), "it is run again in 2s")
	for range 20 {
		moveTime(maxPluginPause)
		wantError(t, get(), "it failed with exit status 1")
	}
	wantError(t, get(), "it is run again in 1m0s")
	if n := runs(); n != 22 {
		t.Errorf("the plugin was run %d times after 22 pauses", n)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	moveTime(maxPluginPause)
	if err := get(); err != nil {
		t.Error(err)
	}
}

// Bug: while a token file could not be read, each request read the file and wrote a log line. The test sets the default
// logger, and therefore runs alone.
func TestTokenFileThatCannotBeRead(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	path := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	synctest.Test(t, func(t *testing.T) {
		f := tokenFile{path: path}
		check := func(want string) {
			t.Helper()
			if got, err := f.get(); err != nil || got != want {
				t.Errorf("the token is %q, %v; want %q", got, err, want)
			}
		}
		check("first")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tokenPeriod)
		for range 900 { // 90 s
			check("first")
			time.Sleep(100 * time.Millisecond)
		}
		if n := strings.Count(log.String(), "cannot read the token again"); n != 2 {
			t.Errorf("%d log lines in 90 s, want 2", n)
		}
		check("first")
		write("second")
		check("first")
		time.Sleep(tokenRetryPeriod)
		check("second")
	})
}

// Bug: without pings of HTTP/2 a watch counted as checked by pings, so that a dead watch was found minutes later. The test sets
// an environment variable, and therefore runs alone.
func TestWatchWithoutPings(t *testing.T) {
	for _, test := range []struct {
		seconds string
		want    bool
	}{{"0", false}, {"-1", false}, {"5", true}, {"", true}} {
		t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", test.seconds)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		server.EnableHTTP2 = true
		server.StartTLS()
		defer server.Close()
		response, err := clientOf(t, &Config{Host: server.URL, Insecure: true}).Do(t.Context(), requestFor(wire.VerbWatch))
		if err != nil {
			t.Fatal(err)
		}
		response.BodyReader.Close()
		if response.Pings != test.want {
			t.Errorf("with HTTP2_READ_IDLE_TIMEOUT_SECONDS=%s, Pings is %t", test.seconds, response.Pings)
		}
	}
}
