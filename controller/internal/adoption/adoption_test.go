package adoption

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// blindView is a view without a cache.
type blindView struct{}

func (blindView) KnownState(wire.Ref) cache.KnownState { return cache.KnownState{} }

// Without controller.Owns the read of the live object is refused. An author who declared that read alone would get the next
// refusal, and at the end an operator that does not see when its child is deleted.
func TestForbiddenReadOfAChildNamesOwns(t *testing.T) {
	t.Parallel()
	forbidding := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusForbidden, Answer: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no"}}
	})
	g := NewGuard(blindView{}, nil, nil, nil)
	_, err := g.decide(t.Context(), forbidding, &wire.Request{Verb: wire.VerbPatch, Name: "a"}, wire.Ref{Name: "eden", UID: "1"}, false)
	if !kube.IsForbidden(err) || !strings.Contains(err.Error(), "a controller declares its children by controller.Owns") {
		t.Errorf("the error is %v", err)
	}
}
