package page

import (
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube/wire"
)

// write is one request of a reconcile that changes something.
type write struct {
	Verb string
	// Resource is the name that kubectl uses, such as deployments.apps.
	Resource    string
	Object      objectName
	Subresource string
	// IsSkipped is true for an apply that was not sent, because it would have changed nothing.
	IsSkipped bool
	IsDryRun  bool
	// IsConfidential is true for a write whose content is not shown.
	IsConfidential bool
	// IsCreated is true if the object did not exist before. IsUnknown is true if the state before is not known. In both
	// cases Difference has the fields that were sent.
	IsCreated, IsUnknown bool
	Error                string
	Difference           difference
	// Conditions are the conditions that have got another status.
	Conditions []condition
}

// isDeletion reports whether the write deletes.
func (w *write) isDeletion() bool {
	return w.Verb == string(wire.VerbDelete) || w.Verb == string(wire.VerbDeleteCollection)
}

// isConfidential reports whether the content of an object must not be shown: Secrets, tokens, and the reviews of
// tokens.
func isConfidential(r *wire.Resource, subresource string) bool {
	return r.Group == "" && r.Plural == "secrets" || r.Group == "authentication.k8s.io" || subresource == "token"
}

// newWrite returns what the page keeps of a write.
func newWrite(r *wire.Request, before cache.KnownState, response *wire.Response, err error) *write {
	w := &write{
		Verb: string(r.Verb), Resource: r.Resource.String(), Subresource: r.Subresource,
		Object:   objectName{r.Resource.Kind, r.Namespace, r.ObjectName()},
		IsDryRun: r.Query.Get("dryRun") != "",
	}
	switch {
	case err != nil:
		w.Error = shortened(err.Error(), maxError)
		return w
	case response.Cached:
		w.IsSkipped = true
		return w
	case isConfidential(&r.Resource, r.Subresource):
		w.IsConfidential = true
		return w
	}
	if w.Object.Name == "" && r.Verb == wire.VerbCreate { // the server generated the name
		w.Object.Name = decodeObject(response.Body).Metadata.Name
	}
	w.setDifference(r, before, response.Body)
	return w
}

// setDifference sets what the write has changed. answer is the object after the write.
func (w *write) setDifference(r *wire.Request, before cache.KnownState, answer []byte) {
	isWhole := r.Representation == wire.Full && (r.Subresource == "" || r.Subresource == "status")
	switch {
	case w.isDeletion():
		return
	case r.Verb == wire.VerbCreate, isWhole && before.IsCertain && !before.IsPresent:
		w.IsCreated = r.Subresource == ""
	case isWhole && before.IsPresent && before.Representation == wire.Full:
		if state, err := before.Bytes(); err == nil {
			w.Difference = differenceOf(state, answer)
			w.Conditions = conditionsChanged(decodeObject(state), decodeObject(answer))
			return
		}
		fallthrough
	default:
		w.IsUnknown = true
	}
	w.Difference = fieldsOf(r.Body)
	if isWhole {
		w.Conditions = conditionsChanged(new(shownObject), decodeObject(answer))
	}
}
