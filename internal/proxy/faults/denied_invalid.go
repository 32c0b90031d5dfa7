package faults

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
)

// DeniedInvalid answers the write of its point, and all writes of the step with the verb and the object of the point,
// with 422. It lasts until the next step, in which the user changes the sample. The program must try the change then.
const DeniedInvalid Kind = "denied-invalid"

// invalidity is the family of [DeniedInvalid]. Explorations plan its runs, because the user changes the sample in them.
type invalidity struct{ baseFamily }

func (invalidity) Describe() Description {
	return Description{
		Kinds: []Kind{DeniedInvalid}, IsDefault: true, OutlastsStep: true, DeniesWrites: true,
		WhyNotPlanned: "the program writes no object in the first step, or the schema suggests no change that the user can make",
	}
}

func (invalidity) Text(f Fault) string {
	return fmt.Sprintf("%s until the next step from %s", f.Kind, f.At)
}

func (invalidity) arm(a *Armed, _ stepContext) (effect, error) {
	return newDenialEffect(a, newDenialAnswer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		"%s %q is invalid: spec: Invalid value: the value is not supported"))
}

func (invalidity) AtTrigger(_ context.Context, run *Run, a *Armed) error {
	run.RecordFault(InServer, a.fault.String())
	return nil
}

// isChangeOfContent reports whether a write sends the content of an object.
func isChangeOfContent(p proxy.Point) bool {
	return p.Verb != "delete" && p.Verb != "deletecollection" && p.Subresource == ""
}
