// Package authorizer lets those read the pages of a program whom the cluster allows to, with the authentication and the
// authorization of the cluster, as the components of Kubernetes guard their pages.
package authorizer

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

const (
	// answerLifetime is how long an answer of the cluster counts.
	answerLifetime = time.Minute
	// maxAnswers bounds how many answers an Authorizer remembers.
	maxAnswers = 1024
	// maxReviews bounds how many requests ask the cluster at a time. The others wait.
	maxReviews = 8
	// maxGoodTokens bounds how many good tokens an Authorizer remembers, and goodLifetime is for how long.
	maxGoodTokens = 256
	goodLifetime  = time.Hour
	// reviewTimeout is how long the cluster may take for one request.
	reviewTimeout = 10 * time.Second
)

// Authorizer passes on a request if its bearer token belongs to a user with the permission for the request. It
// asks the API server: a TokenReview names the user, and a SubjectAccessReview reports whether the user may do
// what the request does to its path, such as get /metrics. The rules of RBAC have nonResourceURLs for that
// purpose.
//
// An Authorizer neither logs tokens nor keeps them. It asks about the tokens of one source address at a limited rate,
// so that nobody can make the program flood the API server with reviews of invented tokens. Tokens that were good
// within the last hour pass the limit.
type Authorizer struct {
	client *kube.Client
	log    *slog.Logger
	// browserPaths are the paths of pages for browsers. A get of such a path, and of the paths below it, may have the token as
	// the password of a basic authentication (RFC 7617), which browsers ask for. All other requests need a bearer token:
	// browsers send passwords by themselves, so that another web site could have a browser send requests that change
	// something.
	browserPaths []string
	// reviewing holds an element for each request that asks the cluster.
	reviewing chan struct{}

	mu sync.Mutex
	// answers holds at most maxAnswers.
	answers map[questionHash]answer
	// goodTokens holds when a token was last good. They are apart from answers, because wrong tokens could replace
	// the answers about them.
	goodTokens map[tokenHash]time.Time
	limits     sourceLimits
}

// tokenHash is the hash of a token.
type tokenHash [sha256.Size]byte

// questionHash is the hash of a token, a verb and a path.
type questionHash [sha256.Size]byte

// answer is what the cluster answered to a question.
type answer struct {
	// code is the HTTP status that the answer means: 200, 401 or 403.
	code    int
	expires time.Time
}

// New returns an Authorizer that asks by client. browserPaths are the paths of pages for browsers.
func New(client *kube.Client, browserPaths []string, log *slog.Logger) *Authorizer {
	return &Authorizer{
		client: client, browserPaths: browserPaths, log: log, reviewing: make(chan struct{}, maxReviews),
		answers: make(map[questionHash]answer), goodTokens: make(map[tokenHash]time.Time), limits: newSourceLimits(),
	}
}

// Handler returns a handler that checks each request, and calls next with those that may pass. Requests for the paths
// in open need no token.
func (a *Authorizer) Handler(next http.Handler, open ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(open, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		switch code := a.statusOf(r); code {
		case http.StatusOK:
			r.Header.Del("Authorization") // it is nobody else's concern
			next.ServeHTTP(w, r)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			if a.isForBrowsers(r) {
				w.Header().Add("WWW-Authenticate",
					`Basic realm="any name, and a token of the cluster as the password", charset="UTF-8"`)
			}
			http.Error(w, "a bearer token of the cluster is required", code)
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many unknown tokens from this address", code)
		case http.StatusForbidden:
			http.Error(w, "the token's user may not "+verbOf(r)+" this path: a ClusterRole with nonResourceURLs allows it", code)
		default:
			http.Error(w, "the cluster cannot be asked whether the token allows this", code)
		}
	})
}

// statusOf returns the HTTP status that a request deserves: 200 if the request may pass. It asks the cluster if it
// must.
func (a *Authorizer) statusOf(r *http.Request) int {
	token, ok := bearerToken(r)
	if !ok && a.isForBrowsers(r) {
		_, token, ok = r.BasicAuth()
	}
	if !ok || token == "" {
		return http.StatusUnauthorized
	}
	question := sha256.Sum256([]byte(token + "\x00" + verbOf(r) + "\x00" + r.URL.Path))
	if code, ok := a.knownAnswer(question); ok {
		return code
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	select {
	case a.reviewing <- struct{}{}:
		defer func() { <-a.reviewing }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable
	}
	// Another request may have asked meanwhile.
	if code, ok := a.knownAnswer(question); ok {
		return code
	}
	if !a.takeQuestion(sha256.Sum256([]byte(token)), r.RemoteAddr) {
		return http.StatusTooManyRequests
	}
	code, err := a.review(ctx, token, verbOf(r), r.URL.Path)
	if err != nil {
		// The reporter of the requests logs an error that lasts.
		a.log.Debug("the cluster cannot be asked whether a token allows a request", "path", r.URL.Path, "error", err)
		return http.StatusServiceUnavailable
	}
	a.rememberAnswer(question, code)
	if code == http.StatusOK {
		a.rememberGoodToken(sha256.Sum256([]byte(token)))
	}
	return code
}

// isForBrowsers reports whether a request may have its token as a password.
func (a *Authorizer) isForBrowsers(r *http.Request) bool {
	return r.Method == http.MethodGet && slices.ContainsFunc(a.browserPaths, func(page string) bool {
		path, isBelow := strings.CutPrefix(r.URL.Path, page)
		return isBelow && (path == "" || path[0] == '/')
	})
}

// takeQuestion counts a question about a token from an address, such as 10.0.0.7:4711, unless the token was good
// lately. It returns false if the address has asked too many questions: then nobody asks the cluster.
func (a *Authorizer) takeQuestion(token tokenHash, address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.goodTokens[token]; ok && time.Since(at) < goodLifetime {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return a.limits.takeQuestion(host)
}

// rememberGoodToken records that a token is good now. If there are too many good tokens, the one that was good the
// longest time ago goes.
func (a *Authorizer) rememberGoodToken(token tokenHash) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.goodTokens[token] = time.Now()
	if len(a.goodTokens) <= maxGoodTokens {
		return
	}
	oldest := token
	for t, at := range a.goodTokens {
		if at.Before(a.goodTokens[oldest]) {
			oldest = t
		}
	}
	delete(a.goodTokens, oldest)
}

// review asks the cluster, and returns the HTTP status that its answer means.
func (a *Authorizer) review(ctx context.Context, token, verb, path string) (code int, err error) {
	user, ok, err := authenticate(ctx, a.client, token)
	if err != nil {
		return 0, err
	}
	if !ok {
		return http.StatusUnauthorized, nil
	}
	ok, err = authorize(ctx, a.client, user, verb, path)
	if err != nil {
		return 0, err
	}
	if !ok {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// knownAnswer returns the answer to a question that still counts, if there is one.
func (a *Authorizer) knownAnswer(question questionHash) (code int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.answers[question]
	return found.code, ok && time.Now().Before(found.expires)
}

// rememberAnswer keeps the answer to a question. If there are too many answers, the expired ones go, and then
// any others: the cluster answers a question again.
func (a *Authorizer) rememberAnswer(question questionHash, code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.answers) >= maxAnswers {
		for q, old := range a.answers {
			if !now.Before(old.expires) {
				delete(a.answers, q)
			}
		}
	}
	for q := range a.answers {
		if len(a.answers) < maxAnswers {
			break
		}
		delete(a.answers, q)
	}
	a.answers[question] = answer{code: code, expires: now.Add(answerLifetime)}
}

// bearerToken returns the token of a request. It reports whether there is one.
func bearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// verbOf returns the verb of a request for a path that is no resource: the method in lower case.
func verbOf(r *http.Request) string { return strings.ToLower(r.Method) }
