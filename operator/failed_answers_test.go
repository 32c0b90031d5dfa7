package operator_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// failedAnswers records answers to users that are failures of the server. A client repeats some requests that have failed, so
// the caller does not see each of them.
type failedAnswers struct {
	// path is the beginning of the paths of the requests.
	path string

	mu    sync.Mutex
	count int
	texts []string
}

// observe returns a RoundTripper that records the failed answers of another one.
func (a *failedAnswers) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || !strings.HasPrefix(r.URL.Path, a.path) || response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests {
			return response, err
		}
		body, readErr := io.ReadAll(response.Body)
		_ = response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(body))
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.count++; a.count <= 10 {
			a.texts = append(a.texts, fmt.Sprintf("%s %s %s: %d %.2000s", time.Now().Format(time.StampMilli), r.Method, r.URL.Path, response.StatusCode, body))
		}
		return response, readErr
	})
}

// mustBeNone fails the test if there were failed answers.
func (a *failedAnswers) mustBeNone(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count > 0 {
		t.Errorf("the API server has answered %d requests of users with a failure:\n%s", a.count, strings.Join(a.texts, "\n"))
	}
}

// roundTripperFunc is a function that is an [http.RoundTripper].
type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
