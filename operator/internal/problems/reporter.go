// Package problems reports what is wrong between a program and its server: requests that fail until somebody acts
// ([Reporter]), streams that fail ([StreamReporter]), and requests that no part declares ([RefuseUndeclared]).
package problems

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Reporter is a handler that logs each lasting problem between the program and its server: an
// unreachable server, refused credentials, a missing permission, a missing kind. It logs each problem once,
// in one line with what can be done, and once more when the problem is over. Whoever makes the requests
// repeats them.
//
// For example, three lists of webapps are denied. The first denial logs "the account may not list
// webapps.example.com" with the remedy, and the others log nothing. A list that succeeds logs "the account
// may list webapps.example.com now".
type Reporter struct {
	log        *slog.Logger
	server     string
	crdCommand string
	// defines holds the resources whose definition the program brings.
	defines map[schema.GroupResource]bool
	// checker decides whether the program declares a request. It may be nil.
	checker *access.Checker

	mu sync.Mutex
	// current holds the problems that last, each with the object of its first request.
	current map[problem]wire.Ref
}

// NewReporter returns a reporter for a program with these needs. checker may be nil.
func NewReporter(
	log *slog.Logger, server, crdCommand string, needs kube.Needs, checker *access.Checker,
) *Reporter {
	reporter := &Reporter{
		log: log, server: server, crdCommand: crdCommand, checker: checker,
		defines: make(map[schema.GroupResource]bool), current: make(map[problem]wire.Ref),
	}
	for _, t := range needs.Defines {
		if !t.Definition.Foreign {
			reporter.defines[t.Resource.GroupResource()] = true
		}
	}
	return reporter
}

// problem is a failure that lasts until somebody outside of the program acts.
type problem struct {
	kind problemKind
	// The other fields are empty for a problem with the server as a whole.
	resource    wire.Resource
	verb        wire.Verb
	subresource string
	// namespace is the namespace of a request for a collection. It is empty for requests for single
	// objects, because one line is enough for many of them.
	namespace string
}

type problemKind string

const (
	unreachable  problemKind = "unreachable"
	unauthorized problemKind = "unauthorized"
	noResource   problemKind = "no resource"
	forbidden    problemKind = "forbidden"
)

// Handler returns next, and reports the problems of its requests.
func (reporter *Reporter) Handler(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		response, err := next.Do(ctx, r)
		if err != nil {
			err = explainRefusal(ctx, reporter.checker, r, err)
		}
		if ctx.Err() == nil {
			reporter.recordOutcome(r, err)
		}
		return response, err
	})
}

// recordOutcome records how r ended. It logs the problems that are over, and the new problem.
func (reporter *Reporter) recordOutcome(r *wire.Request, err error) {
	found, isProblem := diagnose(r, err)
	reporter.mu.Lock()
	defer reporter.mu.Unlock()
	var over []string
	for p, ref := range reporter.current {
		if p.isOver(ref, r, err) {
			delete(reporter.current, p)
			_, recovery, _ := reporter.texts(p)
			over = append(over, recovery)
		}
	}
	slices.Sort(over)
	for _, text := range over {
		reporter.log.Info(text)
	}
	if !isProblem {
		return
	}
	if _, isKnown := reporter.current[found]; !isKnown {
		reporter.current[found] = objectOf(r)
		headline, _, remedy := reporter.texts(found)
		reporter.log.Error(headline+"; will try again", "do", remedy, "error", causeOf(err))
	}
}

// HasReported reports whether the log has the reason of err, an error of a stream. A nil
// *Reporter has reported nothing.
func (reporter *Reporter) HasReported(err error) bool {
	if reporter == nil {
		return false
	}
	// The reporter has seen the request of the stream, and reports each of these errors at its first request.
	if kube.HasReason(err, metav1.StatusReasonUnauthorized) || kube.IsNoResource(err) || isDeniedByAuthorizer(err) {
		return true
	}
	reporter.mu.Lock()
	defer reporter.mu.Unlock()
	_, isUnreachable := reporter.current[problem{kind: unreachable}]
	return isUnreachable && kube.IsUnreachable(err)
}

// isOver reports whether the outcome of r shows that p is over. p began with a request for ref. For example, an answer
// 404 shows that the server can be reached again, but not that it knows a kind.
func (p problem) isOver(ref wire.Ref, r *wire.Request, err error) bool {
	e, isAPIError := kube.AsError(err)
	isAnswered := err == nil || isAPIError && e.Code != 0
	switch p.kind {
	case unreachable:
		return isAnswered
	case unauthorized:
		return err == nil || kube.IsForbidden(err)
	case noResource:
		return err == nil && r.Resource == p.resource
	default:
		// The account may have been allowed the same for other objects all the time.
		return isAuthorized(err) && denialOf(r) == p && objectOf(r) == ref
	}
}

// diagnose returns the problem that the outcome of r shows, if it shows one.
func diagnose(r *wire.Request, err error) (p problem, isProblem bool) {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return problem{}, false
	case kube.IsUnreachable(err):
		return problem{kind: unreachable}, true
	case kube.HasReason(err, metav1.StatusReasonUnauthorized):
		return problem{kind: unauthorized}, true
	case kube.IsNoResource(err):
		return problem{kind: noResource, resource: r.Resource}, true
	case isDeniedByAuthorizer(err):
		return denialOf(r), true
	}
	return problem{}, false
}

// isDeniedByAuthorizer reports whether err means that the account lacks a permission. Quota,
// Pod security, webhooks and a namespace that is being deleted refuse with 403 as well, but no
// Role helps against them, and the error belongs to whoever sent the object. Only the message
// differs: API servers write every denial of an authorizer as `… is forbidden: User "x" cannot
// get resource "pods" …` (ForbiddenStatusError in k8s.io/apiserver).
func isDeniedByAuthorizer(err error) bool {
	e, ok := kube.AsError(err)
	if !ok || !kube.IsForbidden(err) {
		return false
	}
	_, reason, _ := strings.Cut(e.Answer.Message, `forbidden: User "`)
	return strings.Contains(reason, `" cannot `)
}

// isAuthorized reports whether err shows that an authorizer has let the request pass. Authorization comes
// before admission, validation and storage.
func isAuthorized(err error) bool {
	switch {
	case err == nil, kube.IsConflict(err), kube.IsAlreadyExists(err), kube.IsInvalid(err):
		return true
	case kube.IsForbidden(err):
		return !isDeniedByAuthorizer(err)
	}
	return kube.IsNotFound(err) && !kube.IsNoResource(err)
}

// denialOf returns the problem that r has when an authorizer denies it.
func denialOf(r *wire.Request) problem {
	p := problem{kind: forbidden, resource: r.Resource, verb: r.Verb, subresource: r.Subresource}
	if r.Name == "" {
		p.namespace = r.Namespace
	}
	return p
}

// objectOf returns the object or the collection that r is about.
func objectOf(r *wire.Request) wire.Ref {
	ref := r.Ref()
	ref.UID = ""
	return ref
}

// action returns what an authorizer denies, in words.
func (p problem) action() string {
	text := string(p.verb) + " " + p.resource.String()
	if p.subresource != "" {
		text += "/" + p.subresource
	}
	if p.namespace != "" {
		text += " in namespace " + p.namespace
	}
	return text
}

// texts returns what the log says about p: what is wrong, that it is over, and what to do.
func (reporter *Reporter) texts(p problem) (headline, recovery, remedy string) {
	resource := p.resource.String()
	switch p.kind {
	case unreachable:
		return "the server cannot be reached", "the server can be reached again",
			"see that it runs at " + reporter.server + ", or name another with --kubeconfig or --context"
	case unauthorized:
		return "the server does not accept the credentials", "the server accepts the credentials again",
			"renew the credentials of the kubeconfig, or name another with --kubeconfig or --context"
	case noResource:
		remedy = "put its CustomResourceDefinition in place: " + reporter.crdCommand + " | kubectl apply -f -"
		switch {
		case p.resource.Plural == "": // a request for what the version has
			resource = p.resource.GroupVersion().String()
			remedy = "install the definitions of " + resource
		case !reporter.defines[p.resource.GroupResource()]:
			remedy = "install what " + resource + " belong to: this program uses them, but does not define them"
		}
		return "the server does not know " + resource, "the server knows " + resource + " now", remedy
	default:
		remedy = "give the account a Role or ClusterRole that allows it, as the subcommand permissions prints them, or narrow the program with --watch-namespace"
		if p.namespace != "" {
			remedy = "apply the manifests again, or give the account a Role that allows it, as the subcommand permissions prints it; if the namespace " +
				p.namespace + " was deleted, its Role has gone with it: leave it out of --watch-namespace, or create it and then apply the manifests again"
		}
		return "the account may not " + p.action(), "the account may " + p.action() + " now", remedy
	}
}

// causeOf returns the part of err that the headline does not have: the message of the
// server, or why there was none.
func causeOf(err error) string {
	e, ok := kube.AsError(err)
	switch {
	case ok && e.Err != nil:
		return e.Err.Error()
	case ok:
		return e.Answer.Message
	}
	return err.Error()
}
