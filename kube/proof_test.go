package kube

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/bound"
)

// The answer to the first PUT of Modify is lost, but the server has carried it out. Somebody else changes a
// label. The repetition of the PUT is refused, and it is not known whether the first one was carried out. Modify
// calls modify again with its own result, and stores twice what was asked for once.
func TestProofModifyIsAppliedTwice(t *testing.T) {
	bound.SkipFinding(t, 7)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conflict := refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		mine := strings.NewReplacer(`"resourceVersion":"7"`, `"resourceVersion":"9","labels":{"by":"somebody"}`, `"size":1`, `"size":2`).Replace(storedGadget)
		s := &script{t: t, steps: []HandlerFunc{answer(storedGadget), lost(true), conflict, answer(mine), answer(mine), answer(mine)}}
		client := NewClientFromHandler(retry{next: s, limit: 30 * time.Second})
		_, err := Namespaced[gadget](client, "ns").Modify(t.Context(), "g", func(g *gadget) error { g.Spec.Size++; return nil })
		last := s.got[len(s.got)-1]
		if last.Verb == VerbUpdate && strings.Contains(string(last.Body), `"size":3`) {
			t.Errorf("size 1 was to become 2, the server has had 2, and Modify has sent 3 (%v):\n%s", err, s)
		}
	})
}

// An error of modify ends Modify, its documentation says. An error that is a conflict, of another write by
// modify, does not.
func TestProofConflictOfTheFunctionItselfEndsModify(t *testing.T) {
	bound.SkipFinding(t, 14)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		for range 10 {
			s.steps = append(s.steps, answer(storedGadget))
		}
		calls := 0
		_, err := Namespaced[gadget](NewClientFromHandler(s), "ns").Modify(t.Context(), "g", func(*gadget) error {
			calls++
			return &Error{Verb: VerbUpdate, Code: http.StatusConflict, Answer: metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "of something else"}}
		})
		if calls != 1 {
			t.Errorf("modify was called %d times although it returned an error: %v", calls, err)
		}
	})
}
