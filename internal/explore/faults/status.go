package faults

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// newStatus returns an error answer of an API server.
func newStatus(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

// statusOf returns the answer by which a fault replaces the server's answer, and reports whether
// faults of this kind replace answers.
func statusOf(kind schedule.Kind) (metav1.Status, bool) {
	switch kind {
	case schedule.Refused429:
		return newStatus(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later"), true
	case schedule.Refused500, schedule.Committed500:
		return newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "an internal error occurred"), true
	case schedule.Refused503:
		return newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"), true
	case schedule.Refused504, schedule.Committed504:
		return newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the request timed out"), true
	}
	return metav1.Status{}, false
}

// encoded returns the header and the body of an answer.
func encoded(status metav1.Status) (http.Header, []byte) {
	body, err := kube.Marshal(status)
	if err != nil {
		panic(err) // a Status is plain data
	}
	header := http.Header{"Content-Type": {kube.ContentJSON}, "Content-Length": {strconv.Itoa(len(body))}}
	if status.Code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1") // as priority and fairness does
	}
	return header, body
}

// writeStatus answers a request with a Status.
func writeStatus(w http.ResponseWriter, status metav1.Status) {
	header, body := encoded(status)
	for name := range header {
		w.Header().Set(name, header.Get(name))
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body) // the client may be gone
}

// replaceAnswer puts a Status in the place of a server's answer.
func replaceAnswer(response *http.Response, status metav1.Status) {
	header, body := encoded(status)
	setBody(response, body)
	response.Header = header
	response.StatusCode, response.Status = int(status.Code), ""
}

// setBody replaces the body of a response, which was read.
func setBody(response *http.Response, body []byte) {
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
}
