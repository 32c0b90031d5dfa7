package faults

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
)

// The kinds of the family [singleRequest] in which the server does not receive a request. The next try passes: the kinds whose
// names begin with denied- deny a write again and again.
const (
	// Refused429, Refused500, Refused503 and Refused504 answer the request with this status.
	Refused429 Kind = "refused-429"
	Refused500 Kind = "refused-500"
	Refused503 Kind = "refused-503"
	Refused504 Kind = "refused-504"
	// Refused403 answers with 403, as an authorizer does while a role is not granted yet.
	Refused403 Kind = "refused-403"
)

// refusing returns the maker of hooks that answer with a code in place of the server.
func refusing(code int) hookMaker {
	return func(a *Armed, _ stepContext) proxy.HookFunc {
		return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
			a.recordTriggered()
			return refusal(code), nil
		}
	}
}

// refusal returns the answer of a server that refuses a request with a code.
func refusal(code int) *http.Response {
	texts := map[int]struct {
		reason  metav1.StatusReason
		message string
	}{
		http.StatusForbidden:           {metav1.StatusReasonForbidden, "forbidden: no role allows the request"},
		http.StatusTooManyRequests:     {metav1.StatusReasonTooManyRequests, "too many requests, please try again later"},
		http.StatusInternalServerError: {metav1.StatusReasonInternalError, "an internal error occurred"},
		http.StatusServiceUnavailable:  {metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"},
		http.StatusGatewayTimeout:      {metav1.StatusReasonTimeout, "the request timed out"},
	}
	return proxy.Answer(proxy.NewStatus(code, texts[code].reason, texts[code].message))
}
