package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/operator/internal/calls/serving"
)

// recorder records what a handler observes.
type recorder struct {
	mu          sync.Mutex
	conversions []string
	calls       []CallResult
	objects     int
}

func (r *recorder) ObserveConversions(kind, from, to string, result Result, objects int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range objects {
		r.conversions = append(r.conversions, strings.Join([]string{kind, from, to, string(result)}, " "))
	}
	slices.Sort(r.conversions)
}

func (r *recorder) ObserveCall(_ string, result CallResult, objects int, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, result)
	r.objects += objects
}

// newHandler returns a handler, and what it records and logs.
func newHandler(t testing.TB, options Options, kinds ...*Kind) (*Handler, *recorder, *bytes.Buffer) {
	t.Helper()
	r, log := &recorder{}, &bytes.Buffer{}
	options.Observer = r
	options.Logger = slog.New(slog.NewTextHandler(log, nil))
	h, err := NewHandler(kinds, options)
	if err != nil {
		t.Fatal(err)
	}
	return h, r, log
}

const cronPath = "/convert.cronjobs.batch.example.com"

// reviewOf returns the ConversionReview of objects.
func reviewOf(target string, objects ...string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u-1","desiredAPIVersion":"batch.example.com/` + target +
		`","objects":[` + strings.Join(objects, ",") + `]}}`
}

// send sends a call to h.
func send(ctx context.Context, h http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
	return w
}

// The answer has all objects in their order, also those that are incomplete.
func TestCall(t *testing.T) {
	t.Parallel()
	h, r, log := newHandler(t, Options{}, cronKind(t))
	if !h.HasPath(cronPath) || h.HasPath("/other") {
		t.Error("HasPath")
	}
	objects := []string{
		strings.Replace(cronObject("v1", `"schedule":"@daily"`+cronTemplate), `"a"`, `"first"`, 1),
		strings.Replace(cronObject("v1", `"schedule":"panic"`+cronTemplate), `"a"`, `"second"`, 1),
		strings.Replace(cronObject("v2", `"zone":"UTC"`+cronTemplate), `"a"`, `"third"`, 1),
	}
	var answer struct {
		APIVersion, Kind string
		Response         struct {
			UID              string
			Result           struct{ Status string }
			ConvertedObjects []struct {
				APIVersion string
				Metadata   struct{ Name string }
			}
		}
	}
	for range 2 {
		w := send(t.Context(), h, cronPath+"?timeout=30s", reviewOf("v2", objects...))
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if answer.APIVersion != "apiextensions.k8s.io/v1" || answer.Kind != "ConversionReview" || answer.Response.UID != "u-1" || answer.Response.Result.Status != "Success" {
		t.Errorf("%+v", answer)
	}
	var names []string
	for _, each := range answer.Response.ConvertedObjects {
		names = append(names, each.Metadata.Name)
		if each.APIVersion != "batch.example.com/v2" {
			t.Errorf("%+v", each)
		}
	}
	if !slices.Equal(names, []string{"first", "second", "third"}) {
		t.Errorf("the objects are %q", names)
	}
	const kind = "cronjobs.batch.example.com"
	if want := []string{kind + " v1 v2 converted", kind + " v1 v2 converted", kind + " v1 v2 incomplete", kind + " v1 v2 incomplete", kind + " v2 v2 converted", kind + " v2 v2 converted"}; !slices.Equal(r.conversions, want) || r.objects != 6 {
		t.Errorf("recorded %q", r.conversions)
	}
	// The log names the object once, and has no content of it.
	if text := log.String(); strings.Count(text, "name=second") != 1 || !strings.Contains(text, "cron_test.go") || strings.Contains(text, "a password") {
		t.Errorf("the log is %s", text)
	}
}

// A call without objects is answered.
func TestEmptyCall(t *testing.T) {
	t.Parallel()
	h, _, _ := newHandler(t, Options{}, cronKind(t))
	if w := send(t.Context(), h, cronPath, reviewOf("v2")); w.Code != 200 || !strings.Contains(w.Body.String(), `"convertedObjects":[]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A call that another replica may be able to answer closes the connection, and asks to call again.
func TestCallsThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	good := cronObject("v1", `"schedule":"@daily"`)
	for name, c := range map[string]struct {
		path, body string
		code       int
		result     CallResult
	}{
		"an unknown kind":              {"/convert.others.example.com", reviewOf("v2", good), 503, ""},
		"an unknown target":            {cronPath, reviewOf("v9", good), 503, CallUnavailable},
		"an unknown target, no object": {cronPath, strings.Replace(reviewOf("v2"), "batch.example.com", "example.com", 1), 503, CallUnavailable},
		"an unknown version":           {cronPath, reviewOf("v2", good, strings.Replace(good, "/v1", "/v9", 1)), 503, CallUnavailable},
		"another kind":                 {cronPath, reviewOf("v2", strings.Replace(good, "CronJob", "Other", 1)), 503, CallUnavailable},
		"another version of reviews":   {cronPath, strings.Replace(reviewOf("v2", good), "k8s.io/v1", "k8s.io/v2", 1), 503, CallUnavailable},
		"no JSON":                      {cronPath, "{", 400, CallFailed},
		"no uid":                       {cronPath, strings.Replace(reviewOf("v2", good), "u-1", "", 1), 400, CallFailed},
		"no object":                    {cronPath, reviewOf("v2", "7"), 400, CallFailed},
		"no objects":                   {cronPath, strings.Replace(reviewOf("v2"), "objects", "other", 1), 400, CallFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r, _ := newHandler(t, Options{}, cronKind(t))
			w := send(t.Context(), h, c.path, c.body)
			if w.Code != c.code || w.Header().Get("Connection") != "close" || (w.Header().Get("Retry-After") == "1") != (c.code == 503) {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if c.result != "" && !slices.Equal(r.calls, []CallResult{c.result}) || len(r.conversions) > 0 {
				t.Errorf("recorded %q %q", r.calls, r.conversions)
			}
		})
	}
}

// The bodies of calls are bounded.
func TestBodies(t *testing.T) {
	t.Parallel()
	h, _, _ := newHandler(t, Options{}, cronKind(t))
	for length, code := range map[int64]int{-1: 411, maxBody + 1: 413} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cronPath, strings.NewReader("{}"))
		r.ContentLength = length
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != code {
			t.Errorf("%d: %d %s", length, w.Code, w.Body)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cronPath, http.NoBody)
	r.ContentLength = serving.MaxBodies
	if _, refusal := h.capacity.ReadBody(httptest.NewRecorder(), r, serving.MaxBodies); refusal.IsOverload() {
		t.Error("bytes are still reserved")
	}
}

// blockedKind returns a kind whose function waits until the channel is closed.
func blockedKind(t testing.TB, block chan struct{}) *Kind {
	t.Helper()
	k, err := NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t)}, []*Step{NewStep(func(a *cron1, b *cron2) {
		<-block
		cronToV2(a, b)
	}, cronToV1)})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A call ends before its timeout when a function does not return. Its place is free when the function has returned.
func TestSlowFunctions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h, r, _ := newHandler(t, Options{MaxCalls: 1}, blockedKind(t, block))
		object := cronObject("v1", `"schedule":"@daily"`)
		began := time.Now()
		w := send(t.Context(), h, cronPath+"?timeout=10s", reviewOf("v2", object))
		if d := time.Since(began); w.Code != 504 || d != 9*time.Second {
			t.Errorf("after %v: %d %s", d, w.Code, w.Body)
		}
		// The function still has the only place.
		if w := send(t.Context(), h, cronPath, reviewOf("v2", object)); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Wait(ctx); err == nil {
			t.Error("Wait has returned before the function")
		}
		close(block)
		if err := h.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if w := send(t.Context(), h, cronPath, reviewOf("v2", object)); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if want := []CallResult{CallFailed, CallOverload, CallAnswered}; !slices.Equal(r.calls, want) {
			t.Errorf("recorded %q, want %q", r.calls, want)
		}
	})
}

// A function that ends its goroutine does not end the call.
func TestFunctionThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	k, err := NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t)}, []*Step{NewStep(func(*cron1, *cron2) { runtime.Goexit() }, cronToV1)})
	if err != nil {
		t.Fatal(err)
	}
	there := convertText(t, k, cronObject("v1", `"schedule":"@daily"`+cronTemplate), "v2")
	if !there.IsIncomplete || !strings.Contains(there.Failures[0].Err.Error(), "ended its goroutine") {
		t.Errorf("%+v", there.Failures)
	}
}

// Two conversions of one kind are an error.
func TestKindTwice(t *testing.T) {
	t.Parallel()
	if _, err := NewHandler([]*Kind{cronKind(t), cronKind(t)}, Options{}); err == nil || !strings.Contains(err.Error(), "CronJob.batch.example.com is declared twice") {
		t.Errorf("%v", err)
	}
	h, err := NewHandler([]*Kind{cronKind(t)}, Options{}) // the defaults work
	if err != nil {
		t.Fatal(err)
	}
	if w := send(t.Context(), h, cronPath, reviewOf("v2", cronObject("v1", `"schedule":"5 * * * *"`+cronTemplate))); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// BenchmarkCall measures a call with one object of 2 KB, without TLS.
func BenchmarkCall(b *testing.B) {
	h, _, _ := newHandler(b, Options{}, cronKind(b))
	h.observer = noObserver{}
	body := reviewOf("v2", benchmarkObject(`"@hourly"`))
	b.ReportAllocs()
	began := processorTime()
	for b.Loop() {
		if w := send(b.Context(), h, cronPath, body); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
	b.ReportMetric(float64(processorTime()-began)/float64(b.N)/1e6, "cpu-ms/op")
}

// The log has the name of an object. It never has a value of the object, or the key of an annotation that keeps one.
func TestLogHasNoContent(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	observed := &recorder{}
	h, err := NewHandler([]*Kind{cronKind(t)}, Options{Observer: observed, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	secret := `,"policy":"sesame","notes":{"x":{"author":"sesame"}}`
	tooLarge := `,"notes":{"x":{"author":"sesame` + strings.Repeat("a", 200<<10) + `"}}`
	review := reviewOf("v2", cronObject("v1", `"schedule":"@hourly"`+secret+cronTemplate), cronObject("v1", `"schedule":"panic"`+secret+cronTemplate), cronObject("v1", `"schedule":"@hourly"`+tooLarge+cronTemplate))
	w := send(t.Context(), h, cronPath, review)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "sesame") {
		t.Fatalf("%d %.2000s", w.Code, w.Body)
	}
	send(t.Context(), h, cronPath, strings.Replace(review, `"kind":"CronJob"`, `"kind":"sesame"`, 1)[:len(review)-9]) // bad JSON
	text := log.String() + strings.Join(observed.conversions, " ")
	if strings.Contains(text, "sesame") || strings.Contains(text, Prefix) || !strings.Contains(text, "namespace=shop name=a") {
		t.Errorf("the log is %s", text)
	}
}
