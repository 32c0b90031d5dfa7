package controller

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// notInherited refuses to apply a child that still belongs to an object of the same name
// that was there before. The garbage collector is about to delete it; but an apply by the
// same field manager would replace its owner, and the new object would inherit it. The
// refusal is a conflict, which is retried quietly until the child is gone.
func (e *engine[T]) notInherited(next kube.Handler, self kube.Ref) kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		if r.Verb != kube.VerbPatch || r.Subresource != "" || !bytes.Contains(r.Body, []byte(self.UID)) {
			return next.Do(ctx, r)
		}
		for _, sub := range e.subs {
			if !sub.source.owned || sub.source.kind.Resource != r.Resource {
				continue
			}
			child, ok := sub.open.Store().Get(kube.Key{Namespace: r.Namespace, Name: r.Name})
			if !ok || !ofPredecessor(child.Record, self) {
				continue
			}
			message := fmt.Sprintf("it belongs to an earlier %s %q, with which it is about to be deleted", self.Resource.Kind, self.Name)
			return nil, &kube.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusConflict, Answer: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: message,
			}}
		}
		return next.Do(ctx, r)
	})
}

// ofPredecessor tells that a child is controlled by an object that had the name of self.
func ofPredecessor(child cache.Record, self kube.Ref) bool {
	for _, owner := range child.Owners {
		if owner.Controller && owner.Group == self.Resource.Group && owner.Kind == self.Resource.Kind &&
			owner.Name == self.Name && owner.UID != self.UID {
			return true
		}
	}
	return false
}
