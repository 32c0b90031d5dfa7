package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// NewStatus returns an error answer of an API server.
func NewStatus(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

// Answer returns a response that has a Status. A hook returns it in place of the server's answer.
func Answer(status metav1.Status) *http.Response {
	response := AnswerJSON(int(status.Code), status)
	if status.Code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1") // as priority and fairness does
	}
	return response
}

// AnswerJSON returns a response that has a value as JSON.
func AnswerJSON(code int, value any) *http.Response {
	body, err := kube.Marshal(value)
	if err != nil {
		panic(err) // the values are plain data
	}
	response := &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {wire.ContentJSON}},
	}
	SetBody(response, append(body, '\n'))
	return response
}

// writeStatus answers a request with a Status.
func writeStatus(w http.ResponseWriter, status metav1.Status) {
	response := Answer(status)
	defer response.Body.Close()
	for name := range response.Header {
		w.Header().Set(name, response.Header.Get(name))
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // the client may be gone
}

// ReadBody returns the body of a response, which can be read again.
func ReadBody(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	SetBody(response, body)
	return body, nil
}

// SetBody replaces the body of a response, which was read.
func SetBody(response *http.Response, body []byte) {
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
}
