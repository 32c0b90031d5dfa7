package wire

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// emptyList is the last page of a list without objects.
const emptyList = `{"kind":"List","metadata":{"resourceVersion":"9","continue":""},"items":[]}`

// FuzzPages checks that a page of a list has the items found by a decoder. An answer that is no list must be
// an error. An answer that was taken for an empty list would be the deletion of all objects.
func FuzzPages(f *testing.F) {
	for _, text := range []string{
		`{"kind":"List","metadata":{"resourceVersion":"9","continue":""},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
		`{"kind":"List","metadata":{"resourceVersion":"9","continue":"next"},"items":[{"metadata":{"name":"a"}}]}`, emptyList, `{"items":null}`, `{"items":[null,7,"x",[]]}`, `{"metadata":{"continue":"n"}}`,
		`{"kind":"Status","status":"Failure"}`, `{"items":{}}`, `{"items":[{]}`, `{"items":[]`, `{"items":[{}],"items":[]}`, `{"metadata":{"resourceVersion":7}}`, `[]`, `null`, `7`, ``, `{} {}`, `<html>`,
	} {
		f.Add([]byte(text))
	}
	stream := Stream{Resource: Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Plural: "things"}}
	f.Fuzz(func(t *testing.T, body []byte) {
		var want listPage
		wantErr := kubejson.Unmarshal(body, &want)
		requests := 0
		handler := HandlerFunc(func(_ context.Context, r *Request) (*Response, error) {
			if requests++; requests == 1 {
				return &Response{Code: http.StatusOK, Body: bytes.Clone(body)}, nil
			}
			if next := r.Query.Get("continue"); next != want.Metadata.Continue {
				t.Errorf("the token of the next page is %q, not %q", next, want.Metadata.Continue)
			}
			return &Response{Code: http.StatusOK, Body: []byte(emptyList)}, nil
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

// The limit of a page depends on the size of the objects of the last page.
func TestNextLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ items, size, want int }{
		{0, 100, 500}, {500, 1 << 20, 500}, {500, 16 << 20, 250}, {100, 8 << 20, 100}, {5, 50 << 20, 10},
	} {
		if got := nextLimit(test.items, test.size); got != test.want {
			t.Errorf("after %d objects in %d bytes the limit is %d, want %d", test.items, test.size, got, test.want)
		}
	}
}
