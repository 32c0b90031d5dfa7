package kube

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// FuzzRefusal checks that callers can classify the error of each refusal of a server. No server makes a
// client wait for longer than a minute.
func FuzzRefusal(f *testing.F) {
	for _, status := range []string{
		`{"kind":"Status","reason":"Expired","code":410}`, `{"kind":"Status","reason":"NotFound","details":{"name":"a","retryAfterSeconds":2147483647}}`,
		`{"kind":"Status","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","field":".spec"}]}}`, `{"kind":"Status","code":"x"}`, `{"kind":"List"}`, `{`, `null`, `<html>`, ``,
	} {
		f.Add(uint16(404), wire.ContentJSON, "1", []byte(status))
		f.Add(uint16(503), "text/html; charset=\"", "Wed, 21 Oct 2065 07:28:00 GMT", []byte(status))
		f.Add(uint16(302), wire.ContentJSON+";", "-9223372036854775808", []byte(status))
	}
	f.Fuzz(func(t *testing.T, code uint16, contentType, wait string, body []byte) {
		if code < 300 || code > 999 {
			return
		}
		response := &http.Response{
			StatusCode: int(code), Header: http.Header{"Content-Type": {contentType}, "Retry-After": {wait}}, Body: io.NopCloser(bytes.NewReader(body)),
		}
		checkClasses(t, refusalError(&wire.Request{Verb: wire.VerbPatch}, response), int(code))
		checkClasses(t, wire.Stream{}.StatusError(body), 0)
	})
}

// checkClasses fails the test unless err is an Error with that code, of one class at most. The code 0 stands
// for any.
func checkClasses(t *testing.T, err error, code int) {
	t.Helper()
	e, ok := AsError(err)
	if !ok || code != 0 && e.Code != code || err.Error() == "" {
		t.Fatalf("the error of the code %d is %#v", code, err)
	}
	if d := e.RetryDelay(); d < 0 || d > time.Minute {
		t.Errorf("%v: the wait is %s", err, d)
	}
	classes := 0
	for _, is := range []func(error) bool{IsNotFound, IsNoResource, IsAlreadyExists, IsConflict, IsInvalid, IsForbidden, IsTooManyRequests,
		hasReason(metav1.StatusReasonBadRequest), hasReason(metav1.StatusReasonUnauthorized), hasReason(metav1.StatusReasonGone)} {
		if is(err) {
			classes++
		}
	}
	if classes > 1 && !IsNoResource(err) { // the status alone says that a resource is not served
		t.Errorf("%#v is of %d classes", err, classes)
	}
	_, _, _ = IsUIDConflict(err), IsApplyConflict(err), IsNamespaceTerminating(err) // they must not panic
}

// FuzzExecCredential checks that what a credential plugin prints is refused unless it is of use.
func FuzzExecCredential(f *testing.F) {
	for _, text := range []string{
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"2026-01-02T03:04:05Z"}}`,
		"kind: ExecCredential\napiVersion: client.authentication.k8s.io/v1\nstatus: {token: t}\n",
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"clientCertificateData":"a","clientKeyData":"b"}}`,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}`, `{"status":[]}`, `null`, ``, "\t", "&a [*a]", "? : -",
	} {
		f.Add([]byte(text))
	}
	e := &pluginRunner{config: &ExecConfig{APIVersion: execV1}}
	f.Fuzz(func(t *testing.T, stdout []byte) {
		if r, err := e.parse(stdout); err == nil && r.token == "" && r.certificate == nil {
			t.Errorf("%q was accepted", stdout)
		}
	})
}
