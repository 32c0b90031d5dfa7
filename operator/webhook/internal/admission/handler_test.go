package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// offline is a client whose requests fail with an error.
func offline(err error) *kube.Client {
	return kube.NewClientFromHandler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		e := wire.NewError(r)
		e.Err = err
		if status, ok := errors.AsType[*wire.Error](err); ok {
			e.Err, e.Code, e.Answer = nil, status.Code, status.Answer
		}
		return nil, e
	}))
}

// newHandler returns a handler of webhooks, and what it records.
func newHandler(t testing.TB, options admission.Options, webhooks ...*admission.Webhook) (*admission.Handler, *recorder) {
	t.Helper()
	r := &recorder{}
	options.Observer = r
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Client == nil {
		options.Client = offline(errors.New("there is no server"))
	}
	h, err := admission.NewHandler(webhooks, options)
	if err != nil {
		t.Fatal(err)
	}
	return h, r
}

// review returns the AdmissionReview of an operation on widget a. The objects are JSON or empty.
func review(operation, object, oldObject string) string {
	orNull := func(object string) string {
		if object == "" {
			return "null"
		}
		return `{"apiVersion":"webhook.example.com/v1","kind":"Widget","metadata":{"namespace":"shop","name":"a","resourceVersion":"7"},` + object[1:]
	}
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","kind":{"group":"webhook.example.com","version":"v1","kind":"Widget"},` +
		`"resource":{"group":"webhook.example.com","version":"v1","resource":"widgets"},"name":"a","namespace":"shop","operation":"` + operation + `",` +
		`"userInfo":{"username":"jane","uid":"7","groups":["dev"],"extra":{"scope":["x"]}},"object":` + orNull(object) + `,"oldObject":` + orNull(oldObject) +
		`,"dryRun":true,"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}`
}

const (
	validatePath = "/validate.widgets.webhook.example.com/v1?timeout=10s"
	defaultPath  = "/default.widgets.webhook.example.com/v1?timeout=10s"
)

// admissionAnswer is the response of an AdmissionReview.
type admissionAnswer struct {
	UID       string
	Allowed   bool
	Status    metav1.Status
	Patch     []byte
	PatchType string
	Warnings  []string
}

// send sends a call to h.
func send(ctx context.Context, h http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
	return w
}

// answerOf returns the answer of h to a call, which must be an AdmissionReview.
func answerOf(t testing.TB, h http.Handler, path, body string) admissionAnswer {
	t.Helper()
	w := send(t.Context(), h, path, body)
	var a struct {
		APIVersion, Kind string
		Response         admissionAnswer
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
		t.Fatalf("the answer is %d %s", w.Code, w.Body)
	}
	if a.APIVersion != "admission.k8s.io/v1" || a.Kind != "AdmissionReview" || a.Response.UID != "u1" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("the answer is no AdmissionReview: %s", w.Body)
	}
	return a.Response
}

// An error that may pass by itself makes the API server call again. Any other error refuses.
func TestErrorsOfValidators(t *testing.T) {
	t.Parallel()
	status := func(code int, reason metav1.StatusReason) error {
		return &wire.Error{Code: code, Answer: metav1.Status{Reason: reason, Message: "the text"}}
	}
	invalid := field.Invalid(field.NewPath("spec", "schedule"), "x", "it does not parse")
	for name, c := range map[string]struct {
		err  error
		http int
		code int32
		text string
	}{
		"unreachable":           {&wire.Error{Err: errors.New("connection refused")}, 503, 0, "connection refused"},
		"wrapped":               {fmt.Errorf("read: %w", &wire.Error{Err: errors.New("connection refused")}), 503, 0, "read: "},
		"429":                   {status(429, metav1.StatusReasonTooManyRequests), 503, 0, "the text"},
		"500":                   {status(500, metav1.StatusReasonInternalError), 503, 0, "the text"},
		"504":                   {status(504, metav1.StatusReasonTimeout), 503, 0, "the text"},
		"an ended context":      {context.Canceled, 503, 0, "canceled"},
		"a timeout":             {fmt.Errorf("ask: %w", context.DeadlineExceeded), 503, 0, "ask: "},
		"transient and others":  {errors.Join(invalid, errors.New("x"), &wire.Error{Err: errors.New("refused")}), 503, 0, "refused"},
		"not found":             {status(404, metav1.StatusReasonNotFound), 200, 403, "the text (NotFound)"},
		"forbidden":             {status(403, metav1.StatusReasonForbidden), 200, 403, "the text"},
		"conflict":              {status(409, metav1.StatusReasonConflict), 200, 403, "the text"},
		"any error":             {errors.New("the moon is full"), 200, 403, "the moon is full"},
		"a field error":         {invalid, 200, 422, `Widget.webhook.example.com "a" is invalid: spec.schedule: Invalid value: "x": it does not parse`},
		"a wrapped field error": {fmt.Errorf("the schedule: %w", invalid), 200, 422, `"a" is invalid: spec.schedule`},
		"several":               {errors.Join(invalid, field.Required(field.NewPath("spec", "policy"), "")), 200, 422, "[spec.schedule"},
		"a list":                {field.ErrorList{invalid, invalid}.ToAggregate(), 200, 422, "spec.schedule"},
		"an aggregate":          {utilerrors.NewAggregate([]error{invalid, errors.New("x")}), 200, 403, "x"},
		"mixed":                 {fmt.Errorf("all: %w", errors.Join(invalid, errors.New("the moon is full"))), 200, 403, "the moon is full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := newHandler(t, admission.Options{}, admission.Validator(func(context.Context, *widget, *widget, *kube.Client) error { return c.err }, admission.ValidatorOptions{}))
			body := review("CREATE", `{"spec":{"schedule":"x"}}`, "")
			if c.http == 503 {
				w := send(t.Context(), h, validatePath, body)
				if w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Connection") != "close" || !strings.Contains(w.Body.String(), c.text) {
					t.Errorf("the answer is %d %v %s", w.Code, w.Header(), w.Body)
				}
				if got := r.recorded(); !slices.Equal(got, []string{"validate CREATE unavailable"}) {
					t.Errorf("the calls are %q", got)
				}
				return
			}
			a := answerOf(t, h, validatePath, body)
			if a.Allowed || a.Status.Code != c.code || !strings.Contains(a.Status.Message, c.text) {
				t.Errorf("the answer is %+v", a)
			}
			if got := r.recorded(); !slices.Equal(got, []string{"validate CREATE refused"}) {
				t.Errorf("the calls are %q", got)
			}
		})
	}
}

// The context of a call has the request. The objects are those of the operation.
func TestCall(t *testing.T) {
	t.Parallel()
	var calls []admission.Call
	var objects []string
	size := func(w *widget) string {
		if w == nil {
			return "none"
		}
		return w.Spec.Schedule
	}
	h, _ := newHandler(t, admission.Options{}, admission.Validator(func(ctx context.Context, before, after *widget, _ *kube.Client) error {
		calls = append(calls, admission.CallOf(ctx))
		objects = append(objects, size(before)+" to "+size(after))
		return nil
	}, admission.ValidatorOptions{}))
	for _, body := range []string{
		review("CREATE", `{"spec":{"schedule":"new"}}`, ""), review("UPDATE", `{"spec":{"schedule":"new"}}`, `{"spec":{"schedule":"old"}}`),
		review("DELETE", "", `{"spec":{"schedule":"old"}}`),
	} {
		if a := answerOf(t, h, validatePath, body); !a.Allowed {
			t.Errorf("the answer is %+v", a)
		}
	}
	if want := []string{"none to new", "old to new", "old to none"}; !slices.Equal(objects, want) {
		t.Errorf("the objects are %q", objects)
	}
	want := admission.Call{
		User:      admission.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scope": {"x"}}},
		Operation: "CREATE", DryRun: true,
	}
	if len(calls) != 3 || !reflect.DeepEqual(calls[0], want) || calls[2].Operation != "DELETE" {
		t.Errorf("the calls are %+v", calls)
	}
	if call := admission.CallOf(t.Context()); call.Operation != "" {
		t.Errorf("outside of a call: %+v", call)
	}
	admission.Warn(t.Context(), "nobody sees this")
}

// In strict mode the path of a field error names a field of the type. The key of a map can have brackets.
func TestPathsOfFieldErrors(t *testing.T) {
	t.Parallel()
	for path, code := range map[string]int32{
		"spec.ports[0].name": 422, "metadata.labels[x]": 422, "spec.content[a]": 422, "spec.content[a[b]c]": 422,
		"spec.polcy": 500, "spec.ports[0].nam": 500, "spec.content[a": 500, "spec.schedule[0]": 500,
	} {
		h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.Validator(func(context.Context, *widget, *widget, *kube.Client) error {
			return &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: "x"}
		}, admission.ValidatorOptions{}))
		if a := answerOf(t, h, validatePath, review("CREATE", `{"spec":{}}`, "")); a.Status.Code != code {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// An object that does not fit its type blocks neither a repair nor a deletion.
func TestObjectsThatDoNotFit(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.Validator(func(_ context.Context, before, after *widget, _ *kube.Client) error {
		if before != nil || after == nil {
			panic("not expected")
		}
		return checkSchedule(t.Context(), nil, after, nil)
	}, admission.ValidatorOptions{}), admission.Defaulter(func(_ context.Context, w *widget) { w.Spec.Policy = "x" }))
	const wrong, good, bad = `{"spec":{"replicas":"many"}}`, `{"spec":{}}`, `{"spec":{"schedule":"bad"}}`
	for name, c := range map[string]struct {
		path, operation, object, oldObject string
		code                               int32
		warnings                           int
	}{
		"a repair":     {validatePath, "UPDATE", good, wrong, 0, 1},
		"no repair":    {validatePath, "UPDATE", bad, wrong, 422, 1},
		"a deletion":   {validatePath, "DELETE", "", wrong, 0, 1},
		"a new object": {validatePath, "CREATE", wrong, "", 422, 0},
		"no defaults":  {defaultPath, "CREATE", wrong, "", 0, 0},
	} {
		a := answerOf(t, h, c.path, review(c.operation, c.object, c.oldObject))
		if a.Allowed != (c.code == 0) || a.Status.Code != c.code || len(a.Warnings) != c.warnings || a.Patch != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, admission.Options{}, admission.Validator(func(ctx context.Context, _, _ *widget, _ *kube.Client) error {
		admission.Warn(ctx, "two\nlines \xff")
		admission.Warn(ctx, strings.Repeat("ä", 300))
		for range 20 {
			admission.Warn(ctx, strings.Repeat("x", 250))
		}
		return nil
	}, admission.ValidatorOptions{}))
	a := answerOf(t, h, validatePath, review("CREATE", `{"spec":{}}`, ""))
	total := 0
	for _, each := range a.Warnings {
		total += len([]rune(each))
	}
	if !a.Allowed || a.Warnings[0] != "two lines \uFFFD" || a.Warnings[1] != strings.Repeat("ä", 256) || total != 4096 {
		t.Errorf("%d characters: %q", total, a.Warnings)
	}
}

// A field error of the object before is a warning, and its warnings are not shown again.
func TestRatcheting(t *testing.T) {
	t.Parallel()
	check := func(ctx context.Context, before, after *widget, _ *kube.Client) error {
		admission.Warn(ctx, "checking "+after.Spec.Schedule)
		var all []error
		if strings.HasPrefix(after.Spec.Schedule, "bad") {
			all = append(all, field.Invalid(field.NewPath("spec", "schedule"), after.Spec.Schedule, "it does not parse"))
		}
		if before != nil && before.Spec.Policy != after.Spec.Policy {
			all = append(all, field.Forbidden(field.NewPath("spec", "policy"), "it never changes"))
		}
		return errors.Join(all...)
	}
	const old = `{"spec":{"schedule":"bad","policy":"a"}}`
	for name, c := range map[string]struct {
		options  admission.ValidatorOptions
		object   string
		causes   int
		warnings []string
	}{
		"the same error": {admission.ValidatorOptions{}, `{"spec":{"schedule":"bad","policy":"a","replicas":2}}`, 0, []string{"checking bad", `spec.schedule: Invalid value: "bad": it does not parse`}},
		"another error":  {admission.ValidatorOptions{}, `{"spec":{"schedule":"bad","policy":"b"}}`, 1, []string{"checking bad", `spec.schedule: Invalid value: "bad": it does not parse`}},
		"another value":  {admission.ValidatorOptions{}, `{"spec":{"schedule":"bad too","policy":"a"}}`, 1, []string{"checking bad too"}},
		"no error":       {admission.ValidatorOptions{}, `{"spec":{"schedule":"x","policy":"a"}}`, 0, []string{"checking x"}},
		"without":        {admission.ValidatorOptions{NoRatcheting: true}, `{"spec":{"schedule":"bad","policy":"a"}}`, 1, []string{"checking bad"}},
	} {
		h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.Validator(check, c.options))
		a := answerOf(t, h, validatePath, review("UPDATE", c.object, old))
		causes := 0
		if a.Status.Details != nil {
			causes = len(a.Status.Details.Causes)
		}
		if a.Allowed != (c.causes == 0) || causes != c.causes || !slices.Equal(a.Warnings, c.warnings) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// A handler allows no call that it does not know: it says so, and closes the connection.
func TestCallsThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	h, r := newHandler(t, admission.Options{}, admission.Validator(checkSchedule, admission.ValidatorOptions{}))
	good := review("CREATE", `{"spec":{}}`, "")
	for name, c := range map[string]struct {
		path, body string
		code       int
	}{
		"an unknown path":        {"/validate.gadgets.webhook.example.com/v1", good, 503},
		"an unknown version":     {"/validate.widgets.webhook.example.com/v2", good, 503},
		"another object version": {validatePath, strings.ReplaceAll(good, `"version":"v1"`, `"version":"v2"`), 503},
		"another review version": {validatePath, strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v2", 1), 503},
		"no JSON":                {validatePath, good[1:], 400},
		"half of it":             {validatePath, good[:200], 400},
		"no request":             {validatePath, `{"apiVersion":"admission.k8s.io/v1"}`, 400},
		"no object":              {validatePath, review("CREATE", "", ""), 400},
		"too large":              {validatePath, good + strings.Repeat(" ", 7<<20), 413},
	} {
		w := send(t.Context(), h, c.path, c.body)
		if w.Code != c.code || w.Header().Get("Connection") != "close" || (w.Header().Get("Retry-After") != "") != (c.code == 503) {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
	if slices.ContainsFunc(r.recorded(), func(call string) bool { return strings.HasSuffix(call, "allowed") }) {
		t.Error("a call was allowed")
	}
	otherVersion := send(t.Context(), h, validatePath, strings.ReplaceAll(good, `"version":"v1"`, `"version":"v2"`)).Body.String()
	if !strings.Contains(otherVersion, "objects of version v1, and not of v2") {
		t.Errorf("another object version: %s", otherVersion)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, validatePath, strings.NewReader(good))
	request.ContentLength = -1
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, request); w.Code != http.StatusLengthRequired {
		t.Errorf("without a length: %d", w.Code)
	}
}

// Objects outside of the namespaces of the program are allowed.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	refuse := admission.Validator(func(context.Context, *widget, *widget, *kube.Client) error { return errors.New("no") }, admission.ValidatorOptions{})
	for namespace, isAllowed := range map[string]bool{"shop": false, "other": true} {
		h, _ := newHandler(t, admission.Options{Namespaces: []string{namespace}}, refuse)
		if a := answerOf(t, h, validatePath, review("CREATE", `{"spec":{}}`, "")); a.Allowed != isAllowed {
			t.Errorf("%s: %+v", namespace, a)
		}
	}
}

// A function that does not return is cut off shortly before the API server gives up. The answer names it.
func TestSlowFunctions(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[string]time.Duration{
		"?timeout=30s": 29 * time.Second, "?timeout=10s": 9 * time.Second, "?timeout=5s": 4500 * time.Millisecond, "?timeout=1s": 900 * time.Millisecond,
		"?timeout=500ms": 400 * time.Millisecond, "": 9 * time.Second, "?timeout=x": 9 * time.Second,
	} {
		for _, isDeaf := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				h, r := newHandler(t, admission.Options{}, admission.Validator(func(ctx context.Context, _, _ *widget, _ *kube.Client) error {
					if isDeaf {
						<-release
						return nil
					}
					<-ctx.Done()
					return fmt.Errorf("wait for the moon: %w", ctx.Err())
				}, admission.ValidatorOptions{}))
				began := time.Now()
				path, _, _ := strings.Cut(validatePath, "?")
				a := answerOf(t, h, path+timeout, review("CREATE", `{"spec":{}}`, ""))
				if took := time.Since(began); took != want {
					t.Errorf("%s: the call took %s, not %s", timeout, took, want)
				}
				if a.Status.Code != 504 || !strings.Contains(a.Status.Message, "the webhook validate.widgets.webhook.example.com did not answer in time") {
					t.Errorf("the answer is %+v", a)
				}
				if got := r.recorded(); !slices.Equal(got, []string{"validate CREATE failed"}) {
					t.Errorf("the calls are %q", got)
				}
				if isDeaf {
					ended, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if err := h.Wait(ended); err == nil || !strings.Contains(err.Error(), "1 calls") {
						t.Errorf("Wait with a function that has not returned: %v", err)
					}
				}
				close(release)
				if err := h.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A panic refuses one request, and is logged with its stack. So does a function that ends its goroutine.
func TestPanicOfAFunction(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	calls := 0
	h, _ := newHandler(t, admission.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))},
		admission.Validator(func(_ context.Context, _, after *widget, _ *kube.Client) error {
			if calls++; calls == 1 {
				return panicking(after)
			}
			return nil
		}, admission.ValidatorOptions{}))
	body := review("CREATE", `{"spec":{"schedule":"secret"}}`, "")
	if a := answerOf(t, h, validatePath, body); a.Allowed || a.Status.Code != 500 || !strings.Contains(a.Status.Message, "validate.widgets.webhook.example.com panicked") {
		t.Errorf("the answer is %+v", a)
	}
	if a := answerOf(t, h, validatePath, body); !a.Allowed {
		t.Errorf("the answer is %+v", a)
	}
	for _, part := range []string{"level=ERROR", "admission_test.panicking", "namespace=shop name=a", "nil pointer"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, &log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has the object:\n%s", &log)
	}
}

func panicking(w *widget) error {
	*w.Spec.Limit++ // it is nil
	return nil
}

// Calls in flight and their bodies are bounded. Beyond the bounds the API server calls again.
func TestOverload(t *testing.T) {
	t.Parallel()
	large := review("CREATE", `{"spec":{"schedule":"`+strings.Repeat("x", 6<<20)+`"}}`, "")
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"calls":  {review("CREATE", `{"spec":{}}`, ""), 12},
		"bodies": {large, 64 << 20 / len(large)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			var running atomic.Int32
			h, _ := newHandler(t, admission.Options{MaxCalls: 12}, admission.Validator(func(context.Context, *widget, *widget, *kube.Client) error {
				running.Add(1)
				<-release
				return nil
			}, admission.ValidatorOptions{}), admission.Defaulter(func(context.Context, *widget) {}))
			codes := make(chan int)
			const all = 30
			for range all {
				go func() { codes <- send(t.Context(), h, validatePath, c.body).Code }()
			}
			for range all - c.want { // the others wait
				if code := <-codes; code != http.StatusTooManyRequests {
					t.Errorf("the code is %d", code)
				}
			}
			w := send(t.Context(), h, validatePath, c.body)
			if w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Connection") != "close" {
				t.Errorf("the answer is %d %v", w.Code, w.Header())
			}
			if a := answerOf(t, h, defaultPath, review("CREATE", `{"spec":{}}`, "")); !a.Allowed {
				t.Errorf("another webhook: %+v", a)
			}
			close(release)
			for range c.want {
				if code := <-codes; code != http.StatusOK {
					t.Errorf("the code is %d", code)
				}
			}
			if code := send(t.Context(), h, validatePath, c.body).Code; code != http.StatusOK {
				t.Errorf("after the end of the calls: %d", code)
			}
			if err := h.Wait(t.Context()); err != nil || int(running.Load()) != c.want+1 {
				t.Errorf("%d calls, %v", running.Load(), err)
			}
		})
	}
}

// What is wrong with webhooks is an error before any request, with the culprit.
func TestWebhooksThatAreWrong(t *testing.T) {
	t.Parallel()
	type foreign = kube.CustomResource[foreignSpec, kube.None]
	type nameless = kube.CustomResource[namelessSpec, kube.None]
	good := admission.Validator(checkSchedule, admission.ValidatorOptions{})
	for name, c := range map[string]struct {
		webhooks []*admission.Webhook
		want     string
	}{
		"a nil validator":    {[]*admission.Webhook{admission.Validator[widget](nil, admission.ValidatorOptions{})}, "validate.widgets.webhook.example.com: its function is nil"},
		"a nil defaulter":    {[]*admission.Webhook{admission.Defaulter[widget](nil)}, "default.widgets.webhook.example.com: its function is nil"},
		"two validators":     {[]*admission.Webhook{good, good}, "the webhook validate.widgets.webhook.example.com is declared twice"},
		"a foreign kind":     {[]*admission.Webhook{admission.Defaulter(func(context.Context, *foreign) {})}, "default.foreigns.example.com: the Definition is Foreign, and this webhook is for kinds that the program defines: take ValidateForeign or MutateForeign"},
		"a kind without one": {[]*admission.Webhook{admission.Defaulter(func(context.Context, *nameless) {})}, "namelessSpec"},
	} {
		_, err := admission.NewHandler(c.webhooks, admission.Options{Client: offline(errors.New("no"))})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := admission.NewHandler([]*admission.Webhook{good}, admission.Options{}); err == nil {
		t.Error("no client: there is no error")
	}
}

type (
	foreignSpec  struct{}
	namelessSpec struct{}
)

func (foreignSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Foreign", Foreign: true}
}

func (namelessSpec) Definition() kube.Definition { return kube.Definition{Group: "example.com"} }

// scaleReview returns the AdmissionReview of a write to the scale of widget a.
func scaleReview(resourceVersion, spec string) string {
	body := strings.Replace(review("UPDATE", `{"spec":`+spec+`}`, `{"spec":{"replicas":1}}`), `"resourceVersion":"7"`, `"resourceVersion":"`+resourceVersion+`"`, 1)
	return strings.Replace(body, `"name":"a","namespace"`, `"subResource":"scale","name":"a","namespace"`, 1)
}

func TestScale(t *testing.T) {
	t.Parallel()
	live := kube.NewClientFromHandler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		if r.Verb != wire.VerbGet || r.Resource.Plural != "widgets" || r.Namespace != "shop" || r.Name != "a" || !r.Live {
			t.Errorf("the request is %+v", r)
		}
		return &wire.Response{Code: 200, Body: []byte(`{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"schedule":"x","other":{"a":[1]},"replicas":1},"status":{"phase":"y"}}`)}, nil
	}))
	seen := ""
	check := func(_ context.Context, before, after *widget, _ *kube.Client) error {
		seen = fmt.Sprintf("%s %s %d to %d", after.Spec.Schedule, after.Status.Phase, before.Spec.Replicas, after.Spec.Replicas)
		return nil
	}
	h, _ := newHandler(t, admission.Options{Client: live}, admission.Validator(check, admission.ValidatorOptions{}))
	for spec, want := range map[string]string{`{"replicas":5}`: "x y 1 to 5", `{}`: "x y 1 to 0"} {
		if a := answerOf(t, h, validatePath, scaleReview("7", spec)); !a.Allowed || seen != want {
			t.Errorf("%s: %s, %+v", spec, seen, a)
		}
	}
	if a := answerOf(t, h, validatePath, scaleReview("6", `{"replicas":5}`)); a.Status.Code != 409 || a.Status.Reason != metav1.StatusReasonConflict {
		t.Errorf("another resource version: %+v", a)
	}
	h, _ = newHandler(t, admission.Options{Client: offline(errors.New("connection refused"))}, admission.Validator(check, admission.ValidatorOptions{}))
	if w := send(t.Context(), h, validatePath, scaleReview("7", `{"replicas":5}`)); w.Code != 503 {
		t.Errorf("an API server that cannot be reached: %d %s", w.Code, w.Body)
	}
	h, _ = newHandler(t, admission.Options{Client: offline(&wire.Error{Code: 404, Answer: metav1.Status{
		Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Name: "a"},
	}})}, admission.Validator(check, admission.ValidatorOptions{}))
	if a := answerOf(t, h, validatePath, scaleReview("7", `{"replicas":5}`)); a.Status.Code != 403 {
		t.Errorf("an object that is gone: %+v", a)
	}
}

// BenchmarkCall measures a call without TLS, for an object of 2 KB.
func BenchmarkCall(b *testing.B) {
	spec := func(schedule string) string {
		return `{"spec":{"schedule":"` + schedule + `","args":["` + strings.Repeat(`an-argument-of-the-program","`, 40) + `"],"content":{"key":"` + strings.Repeat("x", 700) + `"}}}`
	}
	b.Logf("the object has %d bytes", len(spec("old")))
	validator := admission.Validator(checkSchedule, admission.ValidatorOptions{})
	defaulter := admission.Defaulter(func(_ context.Context, w *widget) { w.Spec.Policy = "x" })
	h, _ := newHandler(b, admission.Options{}, validator, defaulter)
	for name, c := range map[string]struct{ path, body string }{
		"create":  {validatePath, review("CREATE", spec("new"), "")},
		"update":  {validatePath, review("UPDATE", spec("new"), spec("old"))},
		"default": {defaultPath, review("CREATE", spec("new"), "")},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := send(b.Context(), h, c.path, c.body); w.Code != 200 {
					b.Fatal(w.Body)
				}
			}
		})
	}
}

// Metrics have the operation of a call as a label, and anybody who reaches the port can send calls. So an operation of
// no webhook is no call.
func TestUnknownOperations(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, admission.Options{}, admission.Validator(checkSchedule, admission.ValidatorOptions{}))
	for _, operation := range []string{"", "CONNECT", "x1"} {
		if w := send(t.Context(), h, validatePath, review(operation, `{"spec":{}}`, "")); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", operation, w.Code, w.Body)
		}
	}
}
