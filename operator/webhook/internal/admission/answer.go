package admission

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// answer is the answer to a call: an AdmissionReview, or an HTTP error.
type answer struct {
	result Result
	// httpCode is the status of an HTTP error. It is 0 for an AdmissionReview.
	httpCode int
	// err is the reason of an HTTP error.
	err error
	// status is the reason of a refusal. It is nil if the request is allowed.
	status *metav1.Status
	// patch holds operations of a JSON patch, or is nil.
	patch []byte
	// stack is the stack of a panic.
	stack string
	// dropped counts what a defaulter wanted to change or remove.
	dropped int
}

// allowedAnswer returns the answer that allows a request.
func allowedAnswer() *answer { return &answer{result: ResultAllowed} }

// refusedAnswer returns the answer that refuses a request.
func refusedAnswer(code int32, reason metav1.StatusReason, text string) *answer {
	return &answer{
		result: ResultRefused,
		status: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text},
	}
}

// failedAnswer returns the answer that refuses a request because the webhook failed.
func failedAnswer(text string) *answer {
	a := refusedAnswer(http.StatusInternalServerError, metav1.StatusReasonInternalError, text)
	a.result = ResultFailed
	return a
}

// errorAnswer returns the answer that is an HTTP error.
func errorAnswer(code int, result Result, err error) *answer {
	return &answer{result: result, httpCode: code, err: err}
}

// unavailableAnswer returns the answer that makes the API server call again.
func unavailableAnswer(err error) *answer {
	return errorAnswer(http.StatusServiceUnavailable, ResultUnavailable, err)
}

// invalidAnswer returns the answer with the Status that an API server has for these field errors of an object.
func invalidAnswer(r wire.Resource, name string, all []*field.Error) *answer {
	details := &metav1.StatusDetails{Name: name, Group: r.Group, Kind: r.Kind}
	message := ""
	for _, each := range all {
		if message != "" {
			message += ", "
		}
		message += each.Error()
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(each.Type), Message: each.ErrorBody(), Field: each.Field,
		})
	}
	if len(all) > 1 {
		message = "[" + message + "]"
	}
	a := refusedAnswer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		r.GroupKind().String()+` "`+name+`" is invalid: `+message)
	a.status.Details = details
	return a
}

// text returns the reason of an answer that does not allow the request.
func (a *answer) text() string {
	if a.err != nil {
		return a.err.Error()
	}
	return a.status.Message
}

// encode returns the AdmissionReview of the answer.
func (a *answer) encode(uid string, warnings []string) []byte {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Response   struct {
			UID       string         `json:"uid"`
			Allowed   bool           `json:"allowed"`
			Status    *metav1.Status `json:"status,omitempty"`
			Patch     []byte         `json:"patch,omitempty"`
			PatchType string         `json:"patchType,omitempty"`
			Warnings  []string       `json:"warnings,omitempty"`
		} `json:"response"`
	}
	review.APIVersion, review.Kind = reviewVersion, "AdmissionReview"
	r := &review.Response
	r.UID, r.Allowed, r.Status, r.Patch, r.Warnings = uid, a.status == nil, a.status, a.patch, warnings
	if a.patch != nil {
		r.PatchType = "JSONPatch"
	}
	text, _ := kube.Marshal(&review) // no field of it can fail
	return text
}
