package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/yare-go/yare/kube/wire"
)

// transport is the Handler at the end of every pipeline: HTTP.
type transport struct {
	base         *url.URL
	http         *http.Client
	roundTripper *roundTripper
	timeout      time.Duration
	warn         func(ctx context.Context, r *wire.Request, text string)
}

// newTransport returns a transport of config, which it keeps.
func newTransport(
	config *Config, timeout time.Duration, warn func(context.Context, *wire.Request, string),
) (*transport, error) {
	base, err := serverURL(config.Host, config.hasCA() || config.Insecure)
	if err != nil {
		return nil, fmt.Errorf("the server's address %q: %w", config.Host, err)
	}
	credentials, err := newRoundTripper(config)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client for %s: %w", base.Host, err)
	}
	httpClient := &http.Client{
		Transport: credentials,
		// A redirect is not followed: net/http would make a GET of a write, whose answer looks
		// like success, and would show the credentials to whatever host it leads to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &transport{base: base, http: httpClient, roundTripper: credentials, timeout: timeout, warn: warn}, nil
}

// Do sends one HTTP request.
func (t *transport) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	caller := ctx
	// The timeout of a stream ends with its beginning. A watch that falls silent later is
	// found by the pings of HTTP/2 and by package internal/follow.
	ctx, timeout, cancel := withAnswerTimeout(caller, t.timeout)
	isStream := false
	defer func() {
		if !isStream {
			cancel()
		}
	}()

	// A write that was given a connection may have reached the server.
	var isSent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { isSent.Store(true) },
	})
	request, err := t.httpRequest(ctx, r)
	if err != nil {
		e := wire.NewError(r)
		e.Err, e.Permanent = err, true
		return nil, e
	}
	// A credential plugin may wait for a person.
	if err := t.roundTripper.prepare(caller, timeout.pause); err != nil {
		return nil, t.noAnswerError(caller, ctx, r, err, false)
	}
	response, err := t.http.Do(request)
	if err != nil {
		return nil, t.noAnswerError(caller, ctx, r, err, isSent.Load())
	}
	for _, w := range warnings(response.Header) {
		t.warn(caller, r, w)
	}
	switched := r.WantsBodyReader && response.StatusCode == http.StatusSwitchingProtocols
	if !switched && (response.StatusCode < 200 || response.StatusCode > 299) {
		defer response.Body.Close()
		return nil, refusalError(r, response)
	}
	if isStreamed(r) {
		if !timeout.timer.Stop() {
			response.Body.Close()
			return nil, t.noAnswerError(caller, ctx, r, errNoAnswer, true)
		}
		isStream = true
		return &wire.Response{
			Code: response.StatusCode, Header: response.Header,
			BodyReader: newStreamBody(response.Body, cancel),
			Pings:      response.ProtoMajor >= 2 && t.roundTripper.connections.sendsPings(),
		}, nil
	}
	defer response.Body.Close()
	timeout.restart()
	body, err := readAll(response, timeout)
	if err != nil {
		return nil, t.noAnswerError(caller, ctx, r, fmt.Errorf("read the answer: %w", err), true)
	}
	return &wire.Response{Code: response.StatusCode, Header: response.Header, Body: body}, nil
}

// streamBody ends the request's context with the stream.
type streamBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// newStreamBody returns a stream that reads from body, and writes to it if body can be written.
func newStreamBody(body io.ReadCloser, cancel context.CancelFunc) io.ReadCloser {
	b := &streamBody{ReadCloser: body, cancel: cancel}
	if w, ok := body.(io.Writer); ok {
		return struct {
			*streamBody
			io.Writer
		}{b, w}
	}
	return b
}

func (b *streamBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// httpRequest returns the HTTP request for r.
func (t *transport) httpRequest(ctx context.Context, r *wire.Request) (*http.Request, error) {
	if r.Cluster != "" {
		return nil, fmt.Errorf("the request is for the cluster %q, and this client knows only %s: pass it on to a client of that cluster, with a Handler of your own in Client.With", r.Cluster, t.base.Host)
	}
	for what, value := range map[string]string{"namespace": r.Namespace, "name": r.Name} {
		if err := checkSegment(what, value); value != "" && err != nil {
			return nil, err
		}
	}
	u := *t.base
	u.Path, u.RawPath = requestPath(u.Path, r), ""
	query := r.Query
	if r.Verb == wire.VerbWatch {
		query = make(url.Values, len(r.Query)+1)
		maps.Copy(query, r.Query)
		query.Set("watch", "true")
	}
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, httpMethod(r.Verb), u.String(), nil)
	if err != nil {
		return nil, err
	}
	if len(r.Header) > 0 {
		request.Header = r.Header.Clone()
	}
	if len(r.Body) > 0 {
		request.Body = io.NopCloser(bytes.NewReader(r.Body))
		request.ContentLength = int64(len(r.Body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		content := r.ContentType
		if content == "" {
			content = wire.ContentJSON
		}
		request.Header.Set("Content-Type", content)
	}
	request.Header.Set("Accept", acceptHeader(r))
	return request, nil
}

// requestPath returns the path of the URL of r, below base, the path of the server. The path of the status of
// the Deployment "web" in "default" is /apis/apps/v1/namespaces/default/deployments/web/status.
func requestPath(base string, r *wire.Request) string {
	parts := make([]string, 0, 9)
	if r.Resource == (wire.Resource{}) {
		parts = append(parts, "apis")
	} else if r.Resource.Group == "" {
		parts = append(parts, "api", r.Resource.Version)
	} else {
		parts = append(parts, "apis", r.Resource.Group, r.Resource.Version)
	}
	if r.Namespace != "" && !r.Resource.ClusterScoped {
		parts = append(parts, "namespaces", r.Namespace)
	}
	for _, part := range []string{r.Resource.Plural, r.Name, r.Subresource} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.TrimSuffix(base, "/") + "/" + strings.Join(parts, "/")
}

// httpMethod returns the method of HTTP that stands for verb.
func httpMethod(verb wire.Verb) string {
	switch verb {
	case wire.VerbCreate:
		return http.MethodPost
	case wire.VerbUpdate:
		return http.MethodPut
	case wire.VerbPatch:
		return http.MethodPatch
	case wire.VerbDelete, wire.VerbDeleteCollection:
		return http.MethodDelete
	default:
		return http.MethodGet
	}
}

// acceptHeader returns the header Accept of r.
func acceptHeader(r *wire.Request) string {
	if r.WantsBodyReader {
		return "*/*"
	}
	if r.Representation != wire.MetadataOnly {
		return wire.ContentJSON
	}
	kind := "PartialObjectMetadata"
	if r.Verb == wire.VerbList {
		kind = "PartialObjectMetadataList"
	}
	as := ";as=" + kind + ";g=meta.k8s.io;v=v1"
	if r.AcceptsProtobuf {
		return "application/vnd.kubernetes.protobuf" + as + ", " + wire.ContentJSON + as
	}
	return wire.ContentJSON + as
}

// readAll reads the body of an answer. Each part of the body restarts timeout.
func readAll(response *http.Response, timeout *answerTimeout) ([]byte, error) {
	var body bytes.Buffer
	if n := response.ContentLength; n > 0 && n < 64<<20 { // a larger size is not believed before the bytes arrive
		body.Grow(int(n) + bytes.MinRead)
	}
	_, err := body.ReadFrom(progressReader{response.Body, timeout})
	return body.Bytes(), err
}

// noAnswerError returns the error of a request without an answer. isSent is true if the request may have reached the
// server.
func (t *transport) noAnswerError(caller, ctx context.Context, r *wire.Request, err error, isSent bool) error {
	e := wire.NewError(r)
	e.Unknown = isSent && r.Verb.IsWrite()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errNoAnswer):
		e.Err = fmt.Errorf("%w (%s)", errNoAnswer, t.timeout)
		return e
	case caller.Err() != nil:
		e.Err, e.Permanent = contextError(caller), true
		return e
	}
	// The Error names the object already: it needs no URL.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	e.Err = err
	return e
}

// contextError returns why the caller stopped waiting: the error of ctx, and its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// refusalError returns the error of an answer other than 2xx.
func refusalError(r *wire.Request, response *http.Response) error {
	e := wire.NewError(r)
	e.Code = response.StatusCode
	// The server may have carried out the write before it failed.
	e.Unknown = response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented && r.Verb.IsWrite()
	waitHeader := response.Header.Get("Retry-After")
	e.RetryAfter = retryAfter(waitHeader)
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if content, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); content == wire.ContentJSON {
		if Unmarshal(body, &e.Answer) == nil && e.Answer.Kind == "Status" {
			if e.Answer.Code == 0 {
				e.Answer.Code = int32(response.StatusCode)
			}
			if details := e.Answer.Details; details != nil && e.RetryAfter == 0 {
				e.RetryAfter = time.Duration(details.RetryAfterSeconds) * time.Second
			}
			if waitHeader != "" && isNotAccepted(&e.Answer) || isNotCarriedOut(r, &e.Answer) {
				e.Unknown = false
			}
			return e
		}
	}
	// The answer is no Status: it comes from a proxy, or the server does not know the path.
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	if text == "" {
		text = http.StatusText(response.StatusCode)
	}
	if to := response.Header.Get("Location"); to != "" && response.StatusCode < 400 {
		text = fmt.Sprintf("the server redirects to %s, which is not followed: name the address itself in the kubeconfig", to)
	}
	e.Answer = metav1.Status{Status: metav1.StatusFailure, Code: int32(response.StatusCode), Message: text}
	return e
}

// isNotAccepted reports whether status, from an answer with Retry-After, says that the API server did not begin with
// the request. An API server sends it while the server ends, and for a moment while the definition of the resource
// changes (the filter WithWaitGroup of k8s.io/apiserver). The message of both is "apiserver is shutting down".
func isNotAccepted(status *metav1.Status) bool {
	return status.Code == http.StatusServiceUnavailable && status.Reason == metav1.StatusReasonServiceUnavailable
}

// retryAfter returns the wait in the header of that name: a number of seconds or, from
// proxies, a date.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(date))
	}
	return 0
}

// warnings returns the texts of the server's warnings about a request.
func warnings(h http.Header) []string {
	values := h.Values("Warning")
	if len(values) == 0 {
		return nil
	}
	parsed, _ := utilnet.ParseWarningHeaders(values)
	texts := make([]string, 0, len(parsed))
	for _, w := range parsed {
		if w.Code == 299 {
			texts = append(texts, w.Text)
		}
	}
	return texts
}

// serverURL returns the URL of a host, which can be a URL, a host, or a host and a port. A host
// without a scheme gets https if tls is true, else http.
func serverURL(host string, tls bool) (*url.URL, error) {
	if host == "" {
		return nil, errors.New("the address is empty: set Host to a URL, or to a host and a port")
	}
	u, err := url.Parse(host)
	if err == nil && u.Scheme != "" && u.Host != "" {
		return u, nil
	}
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	if u, err = url.Parse(scheme + host); err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("the address %q has a path and no scheme: begin it with https://", host)
	}
	return u, nil
}

// checkSegment returns an error for a name that would lead a URL to something else. The URL of a Pod with the name
// "web/status" would be that of the status of the Pod web. With the name ".." it would be that of the namespace.
func checkSegment(what, value string) error {
	if problems := content.IsPathSegmentName(value); len(problems) > 0 {
		return fmt.Errorf("the %s %q %s", what, value, problems[0])
	}
	return nil
}

// isStreamed reports whether the answer to r comes as a BodyReader.
func isStreamed(r *wire.Request) bool { return r.Verb == wire.VerbWatch || r.WantsBodyReader }
