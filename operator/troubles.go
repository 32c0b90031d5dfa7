package operator

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
)

// troubles stands in the pipeline and says, once and in one line, what is wrong between
// the program and its server and what can be done; and when it is over. The requests
// themselves are repeated by whoever makes them.
type troubles struct {
	log        *slog.Logger
	server     string
	crdCommand string
	// defines are the resources whose definition the program brings.
	defines map[schema.GroupResource]bool

	mu sync.Mutex
	// now are the present troubles, and the object that each was met with first.
	now map[trouble]kube.Ref
}

func newTroubles(log *slog.Logger, server, crdCommand string, needs kube.Needs) *troubles {
	t := &troubles{log: log, server: server, crdCommand: crdCommand, defines: make(map[schema.GroupResource]bool)}
	for _, each := range needs.Defines {
		t.defines[each.Resource.GroupResource()] = true
	}
	return t
}

// trouble is a failure that lasts and that somebody outside of the program has to mend.
type trouble struct {
	what troubleKind
	// resource, verb and the rest are empty for what concerns the server as a whole.
	resource    kube.Resource
	verb        kube.Verb
	subresource string
	// namespace is that of a request for a collection. With single objects it is left out,
	// because one line is enough for many of them.
	namespace string
}

type troubleKind string

const (
	unreachable  troubleKind = "unreachable"
	unauthorized troubleKind = "unauthorized"
	noResource   troubleKind = "no resource"
	forbidden    troubleKind = "forbidden"
)

func (t *troubles) watchOver(next kube.Handler) kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		response, err := next.Do(ctx, r)
		if ctx.Err() == nil {
			t.note(r, err)
		}
		return response, err
	})
}

// note takes in the outcome of a request.
func (t *troubles) note(r *kube.Request, err error) {
	found, is := diagnose(r, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	var over []string
	for before, ref := range t.now {
		if isOver(before, ref, r, err) {
			delete(t.now, before)
			over = append(over, recovery(before))
		}
	}
	slices.Sort(over)
	for _, text := range over {
		t.log.Info(text)
	}
	if _, told := t.now[found]; told || !is {
		return
	}
	if t.now == nil {
		t.now = make(map[trouble]kube.Ref)
	}
	t.now[found] = place(r)
	t.tell(found, err)
}

// isOver tells whether the outcome of r shows that a trouble, which was met with ref, is
// over. Another failure shows little.
func isOver(before trouble, ref kube.Ref, r *kube.Request, err error) bool {
	e, answered := kube.AsError(err)
	answered = err == nil || answered && e.Code != 0
	switch before.what {
	case unreachable:
		return answered
	case unauthorized:
		return err == nil || kube.IsForbidden(err)
	case noResource:
		return err == nil && r.Resource == before.resource
	default:
		// Others of its kind may be allowed, and were all the time.
		return (err == nil || kube.IsNotFound(err)) && forbiddenBy(r) == before && place(r) == ref
	}
}

func diagnose(r *kube.Request, err error) (trouble, bool) {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return trouble{}, false
	case kube.IsUnreachable(err):
		return trouble{what: unreachable}, true
	case kube.IsUnauthorized(err):
		return trouble{what: unauthorized}, true
	case kube.IsNoResource(err):
		return trouble{what: noResource, resource: r.Resource}, true
	case kube.IsForbidden(err):
		return forbiddenBy(r), true
	}
	return trouble{}, false
}

// forbiddenBy is the trouble when r is forbidden.
func forbiddenBy(r *kube.Request) trouble {
	f := trouble{what: forbidden, resource: r.Resource, verb: r.Verb, subresource: r.Subresource}
	if r.Name == "" {
		f.namespace = r.Namespace
	}
	return f
}

// place is what r is about.
func place(r *kube.Request) kube.Ref {
	ref := r.Ref()
	ref.UID = ""
	return ref
}

// action is what is forbidden.
func (t trouble) action() string {
	text := string(t.verb) + " " + t.resource.String()
	if t.subresource != "" {
		text += "/" + t.subresource
	}
	if t.namespace != "" {
		text += " in namespace " + t.namespace
	}
	return text
}

func headline(found trouble) string {
	switch found.what {
	case unreachable:
		return "the server cannot be reached"
	case unauthorized:
		return "the server does not accept the credentials"
	case noResource:
		return "the server does not know " + found.resource.String()
	default:
		return "the account may not " + found.action()
	}
}

func recovery(before trouble) string {
	switch before.what {
	case unreachable:
		return "the server can be reached again"
	case unauthorized:
		return "the server accepts the credentials again"
	case noResource:
		return "the server knows " + before.resource.String() + " now"
	default:
		return "the account may " + before.action() + " now"
	}
}

// tell says what is wrong, and what to do. It goes on being tried.
func (t *troubles) tell(found trouble, err error) {
	var remedy string
	switch found.what {
	case unreachable:
		remedy = "see that it runs at " + t.server + ", or name another with --kubeconfig or --context"
	case unauthorized:
		remedy = "renew the credentials of the kubeconfig, or name another with --kubeconfig or --context"
	case noResource:
		remedy = "put its CustomResourceDefinition in place: " + t.crdCommand + " | kubectl apply -f -"
		if !t.defines[found.resource.GroupResource()] {
			remedy = "install what " + found.resource.String() + " belong to: this program uses them, but does not define them"
		}
	case forbidden:
		remedy = "give the account a Role or ClusterRole that allows it, or narrow the program with --namespace"
	}
	t.log.Error(headline(found)+"; will try again", "do", remedy, "error", cause(err))
}

// cause is the server's part of an error, where the rest has been said.
func cause(err error) string {
	e, ok := kube.AsError(err)
	switch {
	case ok && e.Err != nil:
		return e.Err.Error()
	case ok:
		return e.Answer.Message
	}
	return err.Error()
}
