package authorizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// cluster answers reviews. The user of a token is what follows "token-of-". A user may do what
// allowed holds, such as "ann get /metrics".
type cluster struct {
	mu      sync.Mutex
	allowed map[string]bool
	// fails is the error of all requests. It may be nil.
	fails error
	// delay is how long a review takes.
	delay time.Duration
	// counts holds the number of reviews of each kind.
	counts         map[string]int
	running, peak  int
	lastAccess     subjectAccessReview
	lastAccessBody string
}

func newCluster(allowed ...string) *cluster {
	c := &cluster{allowed: map[string]bool{}, counts: map[string]int{}}
	for _, each := range allowed {
		c.allowed[each] = true
	}
	return c
}

func (c *cluster) Do(_ context.Context, r *wire.Request) (*wire.Response, error) {
	c.mu.Lock()
	c.counts[r.Resource.Kind]++
	c.running++
	c.peak = max(c.peak, c.running)
	c.mu.Unlock()
	time.Sleep(c.delay)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.fails != nil {
		return nil, c.fails
	}
	switch {
	case r.Verb != wire.VerbCreate:
		return nil, fmt.Errorf("unexpected: %s", r.Verb)
	case r.Resource == TokenReviews():
		var t tokenReview
		if err := kube.Unmarshal(r.Body, &t); err != nil || t.APIVersion != "authentication.k8s.io/v1" || t.Kind != "TokenReview" {
			return nil, fmt.Errorf("a bad review: %w", err)
		}
		user, ok := strings.CutPrefix(t.Spec.Token, "token-of-")
		t.Status.Authenticated = ok
		t.Status.User = userInfo{Username: user, UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
		body, err := kube.Marshal(t)
		return &wire.Response{Code: http.StatusCreated, Body: body}, err
	case r.Resource == SubjectAccessReviews():
		var s subjectAccessReview
		if err := kube.Unmarshal(r.Body, &s); err != nil || s.APIVersion != "authorization.k8s.io/v1" || s.Kind != "SubjectAccessReview" {
			return nil, fmt.Errorf("a bad review: %w", err)
		}
		c.lastAccess, c.lastAccessBody = s, string(r.Body)
		what := s.Spec.NonResourceAttributes
		s.Status.Allowed = c.allowed[s.Spec.User+" "+what.Verb+" "+what.Path]
		body, err := kube.Marshal(s)
		return &wire.Response{Code: http.StatusCreated, Body: body}, err
	}
	return nil, fmt.Errorf("unexpected: %s", r.Resource)
}

func (c *cluster) allow(what string, isAllowed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed[what] = isAllowed
}

func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = err
}

func (c *cluster) count(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[kind]
}

// authorized returns a handler behind an Authorizer of that cluster, and the Authorizer. The handler answers with
// the token that it sees.
func authorized(c *cluster, log io.Writer) (http.Handler, *Authorizer) {
	g := New(kube.NewClientFromHandler(c), []string{"/live-page"}, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "seen: "+r.Header.Get("Authorization"))
	}), "/healthz", "/readyz"), g
}

// get returns the answer to a request with this value of the header Authorization.
func get(h http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	return getFrom(h, "192.0.2.1:1234", method, path, authorization)
}

// getFrom returns the answer to a request from a source address.
func getFrom(h http.Handler, source, method, path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = source
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestGuard(t *testing.T) {
	t.Parallel()
	c := newCluster("ann get /metrics", "ann post /gadgets")
	var log bytes.Buffer
	h, _ := authorized(c, &log)
	for _, test := range []struct {
		method, path, authorization string
		code                        int
	}{
		{"GET", "/healthz", "", 200},
		{"GET", "/readyz", "Bearer nonsense", 200},
		{"GET", "/healthz/", "", 401},
		{"GET", "/metrics", "", 401},
		{"GET", "/metrics", "Basic YTpi", 401},
		{"GET", "/metrics", "Bearer", 401},
		{"GET", "/metrics", "Bearer ", 401},
		{"GET", "/metrics", "Bearer nonsense", 401},
		{"GET", "/metrics", "Bearer token-of-ann", 200},
		{"GET", "/metrics", "bearer  token-of-ann", 200},
		{"HEAD", "/metrics", "Bearer token-of-ann", 403},
		{"GET", "/metrics", "Bearer token-of-bob", 403},
		{"GET", "/gadgets", "Bearer token-of-ann", 403},
		{"POST", "/gadgets", "Bearer token-of-ann", 200},
	} {
		w := get(h, test.method, test.path, test.authorization)
		if w.Code != test.code {
			t.Errorf("%s %s with %q: %d, want %d", test.method, test.path, test.authorization, w.Code, test.code)
		}
		if challenge := w.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (w.Code == 401) {
			t.Errorf("%s %s: WWW-Authenticate %q", test.method, test.path, challenge)
		}
		if strings.Contains(w.Body.String(), "token-of") {
			t.Errorf("the handler sees the token: %s", w.Body)
		}
	}
	if strings.Contains(log.String(), "token-of") {
		t.Errorf("the log has a token:\n%s", log.String())
	}
}

// All that the cluster knows of a user counts for what the user may do.
func TestUserIsPassedOn(t *testing.T) {
	t.Parallel()
	c := newCluster("ann get /metrics")
	h, _ := authorized(c, io.Discard)
	get(h, "GET", "/metrics", "Bearer token-of-ann")
	s := c.lastAccess.Spec
	if s.User != "ann" || s.UID != "7" || len(s.Groups) != 1 || s.Groups[0] != "g" || len(s.Extra["scopes"]) != 2 {
		t.Errorf("the review is about %+v", s)
	}
	if strings.Contains(c.lastAccessBody, "status") {
		t.Errorf("the review has a status: %s", c.lastAccessBody)
	}
}

// An answer counts for a minute, whether it allows or denies. Then the cluster is asked again.
func TestAnswersCountForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("ann get /metrics")
		h, _ := authorized(c, io.Discard)
		check := func(when, token string, code, reviews int) {
			t.Helper()
			if w := get(h, "GET", "/metrics", "Bearer "+token); w.Code != code {
				t.Errorf("%s, %s: %d, want %d", when, token, w.Code, code)
			}
			if n := c.count("TokenReview"); n != reviews {
				t.Errorf("%s, %s: %d reviews, want %d", when, token, n, reviews)
			}
		}
		check("at first", "token-of-ann", 200, 1)
		check("at first", "token-of-bob", 403, 2)
		check("at first", "nonsense", 401, 3)
		c.allow("ann get /metrics", false)
		c.allow("bob get /metrics", true)
		time.Sleep(59 * time.Second)
		check("within a minute", "token-of-ann", 200, 3)
		check("within a minute", "token-of-bob", 403, 3)
		check("within a minute", "nonsense", 401, 3)
		time.Sleep(time.Second)
		check("after a minute", "token-of-ann", 403, 4)
		check("after a minute", "token-of-bob", 200, 5)
		check("after a minute", "nonsense", 401, 6)
	})
}

// A cluster that cannot be asked allows nothing, and its error is not remembered.
func TestErrorsAreNotAnswers(t *testing.T) {
	t.Parallel()
	c := newCluster("ann get /metrics")
	var log bytes.Buffer
	h, _ := authorized(c, &log)
	for _, err := range []error{
		&wire.Error{Verb: wire.VerbCreate, Code: 500}, &wire.Error{Verb: wire.VerbCreate, Code: 403}, errors.New("connection refused"),
	} {
		c.fail(err)
		if w := get(h, "GET", "/metrics", "Bearer token-of-ann"); w.Code != 503 || strings.Contains(w.Body.String(), "refused") {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
	if w := get(h, "GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("the health: %d", w.Code)
	}
	c.fail(nil)
	if w := get(h, "GET", "/metrics", "Bearer token-of-ann"); w.Code != 200 {
		t.Errorf("once the cluster answers: %d", w.Code)
	}
	if strings.Contains(log.String(), "token-of") {
		t.Errorf("the log has a token:\n%s", log.String())
	}
}

// Whoever sends ever new tokens takes neither memory nor the whole API server.
func TestAnswersAndReviewsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("ann get /metrics")
		c.delay = time.Millisecond
		h, g := authorized(c, io.Discard)
		var requests sync.WaitGroup
		for i := range 3 * maxAnswers {
			source := fmt.Sprintf("10.0.%d.%d:1", i/256, i%256)
			requests.Go(func() { getFrom(h, source, "GET", "/metrics", fmt.Sprintf("Bearer nonsense-%d", i)) })
		}
		requests.Wait()
		if c.peak > maxReviews {
			t.Errorf("%d reviews at a time", c.peak)
		}
		if n := len(g.answers); n > maxAnswers {
			t.Errorf("%d answers are kept", n)
		}
		if n := len(g.limits.bySource); n > maxSources {
			t.Errorf("%d source addresses are kept", n)
		}
		if w := get(h, "GET", "/metrics", "Bearer token-of-ann"); w.Code != 200 {
			t.Errorf("a good token: %d", w.Code)
		}
		// Requests that ask the same at the same time ask once, as far as they wait.
		before := c.count("TokenReview")
		for range 10 * maxReviews {
			requests.Go(func() { get(h, "GET", "/metrics", "Bearer token-of-eve") })
		}
		requests.Wait()
		if n := c.count("TokenReview") - before; n > maxReviews {
			t.Errorf("one question was asked %d times", n)
		}
	})
}

// Somebody who sent ever new tokens made the program ask the API server a thousand times a second, and pushed the answer
// about a good token out of the memory. Now the rate is limited for each source address, and a token that was good within
// the hour passes.
func TestUnknownTokensHaveARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("ann get /metrics")
		h, _ := authorized(c, io.Discard)
		if w := get(h, "GET", "/metrics", "Bearer token-of-ann"); w.Code != 200 {
			t.Fatalf("the good token: %d", w.Code)
		}
		time.Sleep(2 * answerLifetime)
		before, limited := c.count("TokenReview"), 0
		const seconds = 20
		for second := range seconds {
			for i := range 100 {
				w := get(h, "GET", "/metrics", fmt.Sprintf("Bearer nonsense-%d-%d", second, i))
				if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "" {
					limited++
				} else if w.Code != http.StatusUnauthorized {
					t.Fatalf("an invented token: %d", w.Code)
				}
			}
			if w := get(h, "GET", "/metrics", "Bearer token-of-ann"); w.Code != 200 {
				t.Errorf("the good token while others are invented: %d", w.Code)
			}
			if w := getFrom(h, "192.0.2.2:1", "GET", "/metrics", "Bearer token-of-bob"); w.Code != http.StatusForbidden {
				t.Errorf("another address: %d", w.Code)
			}
			time.Sleep(time.Second)
		}
		asked := c.count("TokenReview") - before
		if asked > questionBurst+seconds*questionsPerSecond+2 || limited < seconds*90 {
			t.Errorf("%d reviews in %d seconds, and %d requests were limited", asked, seconds, limited)
		}
	})
}

// A browser sends the token as a password, which it sends with each further request to the same address, also on behalf of
// other web sites. So the password counts for a get of the page for browsers only.
func TestPasswordsCountForThePageOfBrowsersOnly(t *testing.T) {
	t.Parallel()
	c := newCluster("ann get /live-page", "ann get /live-page/events", "ann get /live-pages", "ann post /live-page", "ann get /metrics", "ann post /gadgets")
	h, _ := authorized(c, io.Discard)
	password := func(token string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("anybody", token)
		return r.Header.Get("Authorization")
	}
	for _, test := range []struct {
		method, path, authorization string
		code                        int
	}{
		{"GET", "/live-page", password("token-of-ann"), 200},
		{"GET", "/live-page/events", password("token-of-ann"), 200},
		{"GET", "/live-page", "Bearer token-of-ann", 200},
		{"GET", "/live-page", password("token-of-bob"), 403},
		{"GET", "/live-page", password("nonsense"), 401},
		{"GET", "/live-page", password(""), 401},
		{"GET", "/live-page", "", 401},
		{"GET", "/live-pages", password("token-of-ann"), 401},
		{"POST", "/live-page", password("token-of-ann"), 401},
		{"GET", "/metrics", password("token-of-ann"), 401},
		{"POST", "/gadgets", password("token-of-ann"), 401},
	} {
		w := get(h, test.method, test.path, test.authorization)
		if w.Code != test.code {
			t.Errorf("%s %s with %q: %d, want %d", test.method, test.path, test.authorization, w.Code, test.code)
		}
		isForBrowsers := test.method == "GET" && strings.HasPrefix(test.path, "/live-page") && test.path != "/live-pages"
		if isAsked := strings.Contains(strings.Join(w.Header().Values("WWW-Authenticate"), " "), "Basic "); isAsked != (w.Code == 401 && isForBrowsers) {
			t.Errorf("%s %s: the answer %d asks for a password: %t", test.method, test.path, w.Code, isAsked)
		}
		if strings.Contains(w.Body.String(), "seen: B") {
			t.Errorf("the handler sees the token: %s", w.Body)
		}
	}
}
