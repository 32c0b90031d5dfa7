package calls

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// stubHandler answers the calls to one path.
type stubHandler struct {
	Handler
	path string
}

func (h stubHandler) HasPath(path string) bool { return path == h.path }

func (stubHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusTeapot)
}

// A call of a webhook that was removed is allowed, and changes nothing. A handler with the path answers in any case.
// Another path is refused, so that the API server asks another replica.
func TestCallsOfARemovedWebhook(t *testing.T) {
	t.Parallel()
	const removed, known = "/default.widgets.webhook.example.com/v1", "/validate.widgets.webhook.example.com/v1"
	r := &router{
		handlers: []Handler{stubHandler{path: "/other"}, stubHandler{path: known}}, log: slog.New(slog.DiscardHandler),
		isRemoved: func(path string) bool { return path == removed || path == known },
	}
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE","object":{}}}`
	for name, c := range map[string]struct {
		path, body string
		code       int
		want       string
	}{
		"removed":      {removed, review, 200, `"response":{"allowed":true,"uid":"u1"}`},
		"known":        {known, review, http.StatusTeapot, ""},
		"another path": {"/default.widgets.webhook.example.com/v2", review, 503, "this replica has no webhook with the path"},
		"half of it":   {removed, review[:60], 400, ""},
		"no request":   {removed, `{"apiVersion":"admission.k8s.io/v1"}`, 400, "no request with a uid"},
		"too large":    {removed, review + strings.Repeat(" ", 7<<20), 413, ""},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body)))
		isClosed := w.Header().Get("Connection") == "close"
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) ||
			c.code >= 400 && c.code != http.StatusTeapot && !isClosed {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
}

// The fields namespace and namePrefix of Kustomize change the names of objects, and not those in permissions and
// labels. The program failed without an error that names the reason.
func TestMovedInstallationIsLogged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ installation, namespace, pod, want string }{
		"as printed":       {"gadgets.gadgets-system", "gadgets-system", "gadgets-5d4-x7", ""},
		"outside of a Pod": {"gadgets.gadgets-system", "gadgets-system", "", ""},
		"nothing is known": {"", "gadgets-system", "gadgets-5d4-x7", ""},
		"namespace":        {"gadgets.gadgets-system", "other", "gadgets-5d4-x7", "--namespace other"},
		"namePrefix":       {"gadgets.gadgets-system", "gadgets-system", "my-gadgets-5d4-x7", "--name-prefix"},
	} {
		var log bytes.Buffer
		warnIfMoved(slog.New(slog.NewTextHandler(&log, nil)), test.installation, test.namespace, test.pod)
		if text := log.String(); (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
			t.Errorf("%s: the log is %q", name, text)
		}
	}
}
