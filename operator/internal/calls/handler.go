package calls

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/calls/serving"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Handler answers the calls to some paths: those of webhooks, or those of conversions. The methods are called in the
// order in which they stand here. Ready can be called at any time after Start has begun.
type Handler interface {
	// Declare returns the further flags and commands, and the kinds whose objects the Handler converts.
	Declare() feature.Declaration
	// Access returns the further permissions that the program needs for what it serves.
	Access() []kube.Access
	// AddTo adds to the objects of an installation. The last object is the Deployment.
	AddTo(objects []manifests.Object, i manifests.Installation) []manifests.Object
	// Prepare makes what ServeHTTP needs.
	Prepare(s *Service) error
	// HasPath reports whether ServeHTTP answers the calls to the path of a URL.
	HasPath(path string) bool
	http.Handler
	// Start publishes what the Handler serves. ctx ends when the program begins to end.
	Start(ctx context.Context, s *Service) error
	// Ready returns nil, or why the replica is not ready.
	Ready() error
	// Wait returns when the calls in flight have ended, or the error of ctx.
	Wait(ctx context.Context) error
}

// Checker is a [Handler] that looks at the cluster for the flag --check.
type Checker interface {
	// CheckDefinitions is that of [feature.Checker] for an installation. isServed is false for --webhooks "".
	CheckDefinitions(ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition,
		i manifests.Installation, isServed bool) error
	// CheckObjects is that of [feature.Checker] for an installation.
	CheckObjects(ctx context.Context, client *kube.Client, i manifests.Installation, printNote func(string)) error
}

// EntryMaker is a [Handler] that API servers call by the entries of webhook configurations.
type EntryMaker interface {
	Entries(target configuration.Target) (validating, mutating []*configuration.Entry, err error)
}

// entriesOf returns the entries of all handlers for a target.
func entriesOf(
	handlers []Handler, target configuration.Target,
) (validating, mutating []*configuration.Entry, err error) {
	for _, h := range handlers {
		if maker, ok := h.(EntryMaker); ok {
			v, m, err := maker.Entries(target)
			if err != nil {
				return nil, nil, err
			}
			validating, mutating = append(validating, v...), append(mutating, m...)
		}
	}
	return validating, mutating, nil
}

// Source is a part with something that API servers call. Parts with the same HandlerName have one Handler together.
type Source interface {
	HandlerName() string
	// NewHandler returns the Handler of all parts of the program with the name, or what is wrong with these parts.
	NewHandler(p *feature.Program) (Handler, error)
}

// Service is what a [Handler] knows of the program and of the address.
type Service struct {
	Program *feature.Program
	Host    *feature.Host
	// Client does not pass the fence of the leader election, because each replica answers.
	Client *kube.Client
	// Metrics gets the metrics of the Handler.
	Metrics *metrics.Registry
	// Target is where API servers call the program. BundleFor and Changed are the fields of [configpublishing.Config].
	Target    configuration.Target
	BundleFor func(published []byte) []byte
	Changed   func() <-chan struct{}
	// IsPublishedByProgram is false if whoever gives the program its certificate publishes what it serves.
	IsPublishedByProgram bool

	// Go runs f in a goroutine. The context of f ends after the last call. An error of f ends the program.
	Go func(f func(context.Context) error)
}

// router passes each call on to the handler with its path.
type router struct {
	handlers []Handler
	log      *slog.Logger
	// isRemoved reports whether the entry of a webhook with a path was removed from the configurations a moment ago.
	isRemoved func(path string) bool
	// capacity is for the calls of webhooks that were removed.
	capacity serving.Capacity
}

// ServeHTTP answers a call. It allows the call of a webhook that was removed, as if it came after the removal: an API
// server that began the call before the removal repeats the call until an answer or its timeout, and no replica may
// know the webhook any more.
func (r *router) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := request.URL.Path
	for _, h := range r.handlers {
		if h.HasPath(path) {
			h.ServeHTTP(w, request)
			return
		}
	}
	if r.isRemoved(path) {
		r.allow(w, request)
		return
	}
	// Another replica, of another release, may know the path.
	r.log.Debug("a call of an unknown webhook", "path", path)
	writeError(w, http.StatusServiceUnavailable, "this replica has no webhook with the path "+path)
}

// maxReview bounds the body of a call that the router or the prober answers, in bytes. An API server accepts objects of
// 3 MiB, and a call has two.
const maxReview = 7 << 20

// allow answers a call by the permission of its request.
func (r *router) allow(w http.ResponseWriter, request *http.Request) {
	r.capacity.Begin()
	defer r.capacity.End()
	body, refusal := r.capacity.ReadBody(w, request, maxReview)
	if refusal != nil {
		r.capacity.LogRefusal(r.log, request, refusal)
		writeError(w, refusal.Code, refusal.Error())
		return
	}
	defer body.Release()
	answer, err := allowingReview(body.Bytes)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	r.log.Debug("allowed a call of a webhook that was removed", "path", request.URL.Path)
	serving.WriteAnswer(w, answer)
}

// allowingReview returns the AdmissionReview that allows the request of another one.
func allowingReview(body []byte) ([]byte, error) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	err := kube.Unmarshal(body, &review)
	if err == nil && review.Request.UID == "" {
		err = errors.New("the AdmissionReview has no request with a uid")
	}
	if err != nil {
		return nil, err
	}
	return kube.Marshal(map[string]any{
		"apiVersion": review.APIVersion, "kind": "AdmissionReview",
		"response": map[string]any{"uid": review.Request.UID, "allowed": true},
	})
}

// writeError answers a call without an AdmissionReview. The API server repeats the call after 503, on another
// connection.
func writeError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Connection", "close")
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, text, code)
}
