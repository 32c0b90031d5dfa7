package ctrl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// transport serves the HTTP requests of client-go by a handler of yare.
type transport struct{ handler wire.Handler }

// RoundTrip serves one request. Its answer is that of the server. A request that had no answer is an error.
func (t *transport) RoundTrip(h *http.Request) (*http.Response, error) {
	if h.Body != nil {
		defer h.Body.Close()
	}
	if h.URL.Path == "/api" { // the version of the core resources never changes
		return jsonResponse(h, http.StatusOK, &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		})
	}
	r, err := parseRequest(h)
	if err != nil {
		return nil, err
	}
	response, err := t.handler.Do(h.Context(), r)
	if e, ok := kube.AsError(err); ok && e.Code != 0 {
		status := e.Status()
		status.TypeMeta, status.Code = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, int32(e.Code)
		return jsonResponse(h, e.Code, &status)
	}
	if err != nil {
		return nil, err
	}
	return httpResponse(h, response), nil
}

// jsonResponse returns an answer with a body that is encoded as JSON.
func jsonResponse(h *http.Request, code int, body any) (*http.Response, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return httpResponse(h, &wire.Response{Code: code, Body: encoded}), nil
}

// httpResponse returns the answer to h.
func httpResponse(h *http.Request, r *wire.Response) *http.Response {
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	// The body is not compressed, whatever the server has sent.
	header.Del("Content-Encoding")
	header.Del("Content-Length")
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", wire.ContentJSON)
	}
	body, length := r.BodyReader, int64(-1)
	if body == nil {
		body, length = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	}
	return &http.Response{
		Status: http.StatusText(r.Code), StatusCode: r.Code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: length, Request: h,
	}
}

// parseRequest returns the request that h makes. Its reads are live.
func parseRequest(h *http.Request) (*wire.Request, error) {
	r, err := parsePath(h.URL.Path)
	if err != nil {
		return nil, err
	}
	r.Query, r.Live = h.URL.Query(), true
	if err := setVerb(r, h.Method); err != nil {
		return nil, err
	}
	if len(r.Query) == 0 {
		r.Query = nil
	}
	if strings.Contains(h.Header.Get("Accept"), ";as=PartialObjectMetadata") {
		r.Representation = wire.MetadataOnly
	}
	// The server takes the field manager of an update from the user agent.
	if agent := h.Header.Get("User-Agent"); agent != "" {
		r.Header = http.Header{"User-Agent": {agent}}
	}
	if h.Body == nil {
		return r, nil
	}
	if r.Body, err = io.ReadAll(h.Body); err != nil {
		return nil, fmt.Errorf("read the body of a request: %w", err)
	}
	if len(r.Body) > 0 {
		r.ContentType = h.Header.Get("Content-Type")
	}
	r.Preconditions = preconditionsOf(r)
	return r, nil
}

// parsePath returns a request with what a path names. For example:
//
//	/apis/apps/v1/namespaces/shop/deployments/web/status   the subresource status of the Deployment web
//	/api/v1/namespaces/shop/status                         the subresource status of the Namespace shop
//	/api/v1/namespaces/shop/pods                           the Pods in the Namespace shop
//	/apis/apps/v1                                          the resources of a version
//	/apis                                                  all groups
func parsePath(path string) (*wire.Request, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	r := new(wire.Request)
	switch {
	case parts[0] == "apis" && len(parts) == 1:
		return r, nil
	case parts[0] == "api" && len(parts) >= 2:
		r.Resource.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 3:
		r.Resource.Group, r.Resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, fmt.Errorf("the path %s is neither that of a resource nor of discovery: send the request by a client of the configuration", path)
	}
	isNamespace := r.Resource.Group == "" &&
		(len(parts) < 3 || len(parts) == 3 && slices.Contains([]string{"status", "finalize"}, parts[2]))
	if len(parts) > 2 && parts[0] == "namespaces" && !isNamespace {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&r.Resource.Plural, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	if len(parts) > 3 {
		r.Subresource = strings.Join(parts[2:], "/")
	}
	return r, nil
}

// setVerb sets the verb of r by the method of HTTP.
func setVerb(r *wire.Request, method string) error {
	switch {
	case method == http.MethodGet && r.Query.Get("watch") != "" && r.Query.Get("watch") != "false":
		r.Verb = wire.VerbWatch
		r.Query.Del("watch")
	case method == http.MethodGet && r.Resource.Plural != "" && r.Name == "":
		r.Verb = wire.VerbList
	case method == http.MethodGet:
		r.Verb = wire.VerbGet
	case method == http.MethodPost:
		r.Verb = wire.VerbCreate
	case method == http.MethodPut:
		r.Verb = wire.VerbUpdate
	case method == http.MethodPatch:
		r.Verb = wire.VerbPatch
	case method == http.MethodDelete && r.Name == "":
		r.Verb = wire.VerbDeleteCollection
	case method == http.MethodDelete:
		r.Verb = wire.VerbDelete
	default:
		return fmt.Errorf("the method %s stands for no verb of the API", method)
	}
	return nil
}

// preconditionsOf returns the preconditions in the body of r. A body of another form, such as a JSON patch, has none.
func preconditionsOf(r *wire.Request) wire.Preconditions {
	type preconditions struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	}
	var body struct {
		Metadata      preconditions `json:"metadata"`
		Preconditions preconditions `json:"preconditions"`
	}
	if err := kube.Unmarshal(r.Body, &body); err != nil {
		return wire.Preconditions{}
	}
	found := body.Metadata
	if r.Verb == wire.VerbDelete || r.Verb == wire.VerbDeleteCollection {
		found = body.Preconditions
	}
	return wire.Preconditions{UID: found.UID, ResourceVersion: found.ResourceVersion}
}
