package kube

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzPages checks that a page of a list has the items found by a decoder. An answer that is no list must be
// an error. An answer that was taken for an empty list would be the deletion of all objects.
func FuzzPages(f *testing.F) {
	for _, text := range []string{
		page("", item("a"), item("b")), page("next", item("a")), page(""), `{"items":null}`, `{"items":[null,7,"x",[]]}`, `{"metadata":{"continue":"n"}}`,
		`{"kind":"Status","status":"Failure"}`, `{"items":{}}`, `{"items":[{]}`, `{"items":[]`, `{"items":[{}],"items":[]}`, `{"metadata":{"resourceVersion":7}}`, `[]`, `null`, `7`, ``, `{} {}`, `<html>`,
	} {
		f.Add([]byte(text))
	}
	stream := Stream{Resource: Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Plural: "things"}}
	f.Fuzz(func(t *testing.T, body []byte) {
		var want listPage
		wantErr := Unmarshal(body, &want)
		requests := 0
		handler := HandlerFunc(func(_ context.Context, r *Request) (*Response, error) {
			if requests++; requests == 1 {
				return &Response{Code: http.StatusOK, Body: bytes.Clone(body)}, nil
			}
			if next := r.Query.Get("continue"); next != want.Metadata.Continue {
				t.Errorf("the token of the next page is %q, not %q", next, want.Metadata.Continue)
			}
			return &Response{Code: http.StatusOK, Body: []byte(page(""))}, nil
		})
		var items []jsontext.Value
		version, pages := "", 0
		var failed error
		for page, err := range stream.Pages(t.Context(), handler) {
			if failed = err; err != nil {
				break
			}
			if pages++; pages == 1 {
				items, version = page.Items, page.ResourceVersion
			}
		}
		switch {
		case (failed == nil) != (wantErr == nil):
			t.Fatalf("%q: the error is %v, not %v", body, failed, wantErr)
		case failed != nil:
			return
		case requests > 1 != (want.Metadata.Continue != ""):
			t.Errorf("%q: %d requests", body, requests)
		}
		if diff := cmp.Diff(want.Items, items); diff != "" || version != want.Metadata.ResourceVersion {
			t.Errorf("%q: the version is %q, the items differ (-want +got):\n%s", body, version, diff)
		}
	})
}

// FuzzRefusal checks that callers can classify the error of each refusal of a server. No server makes a
// client wait for longer than a minute.
func FuzzRefusal(f *testing.F) {
	for _, status := range []string{
		`{"kind":"Status","reason":"Expired","code":410}`, `{"kind":"Status","reason":"NotFound","details":{"name":"a","retryAfterSeconds":2147483647}}`,
		`{"kind":"Status","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","field":".spec"}]}}`, `{"kind":"Status","code":"x"}`, `{"kind":"List"}`, `{`, `null`, `<html>`, ``,
	} {
		f.Add(uint16(404), ContentJSON, "1", []byte(status))
		f.Add(uint16(503), "text/html; charset=\"", "Wed, 21 Oct 2065 07:28:00 GMT", []byte(status))
		f.Add(uint16(302), ContentJSON+";", "-9223372036854775808", []byte(status))
	}
	f.Fuzz(func(t *testing.T, code uint16, contentType, wait string, body []byte) {
		if code < 300 || code > 999 {
			return
		}
		response := &http.Response{
			StatusCode: int(code), Header: http.Header{"Content-Type": {contentType}, "Retry-After": {wait}}, Body: io.NopCloser(bytes.NewReader(body)),
		}
		checkClasses(t, refusal(&Request{Verb: VerbPatch}, response), int(code))
		checkClasses(t, Stream{}.StatusError(body), 0)
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
	for _, is := range []func(error) bool{IsNotFound, IsNoResource, IsAlreadyExists, IsConflict, IsInvalid, IsBadRequest, IsForbidden, IsUnauthorized, IsGone, IsTooManyRequests} {
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
	e := &execCredentials{config: &ExecConfig{APIVersion: execV1}}
	f.Fuzz(func(t *testing.T, stdout []byte) {
		if r, err := e.parse(stdout); err == nil && r.token == "" && r.certificate == nil {
			t.Errorf("%q was accepted", stdout)
		}
	})
}
