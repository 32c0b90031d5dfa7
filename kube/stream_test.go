package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// closed reports whether a watch's body was closed.
type closed struct {
	io.Reader
	done bool
}

func (c *closed) Close() error { c.done = true; return nil }

func watching(text string) (*closed, wire.HandlerFunc) {
	body := &closed{Reader: strings.NewReader(text)}
	return body, func(context.Context, *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: http.StatusOK, BodyReader: body}, nil
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	body, step := watching(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}
{"type":"MODIFIED","object":{"metadata":{"name":"bad"},"spec":7}}
{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}
{"type":"ERROR","object":{"kind":"Status","message":"too old","reason":"Expired","code":410}}
`)
	s := scripted(t, step)
	var got []string
	for event, err := range Namespaced[corev1.Pod](NewClientFromHandler(s), "ns").Watch(t.Context(), "7", Label("a", "b")) {
		switch _, bad := errors.AsType[*wire.DecodeError](err); {
		case bad:
			got = append(got, event.Type+" does not fit")
		case HasReason(err, metav1.StatusReasonGone):
			got = append(got, event.Type+" gone")
		case err != nil:
			t.Error(err)
		default:
			got = append(got, event.Type+" "+event.Object.Name+event.Object.ResourceVersion)
		}
	}
	if diff := cmp.Diff([]string{"ADDED a", "MODIFIED does not fit", "BOOKMARK 9", "ERROR gone"}, got); diff != "" {
		t.Error(diff)
	}
	if !body.done {
		t.Error("the stream is left open")
	}
	if q := s.got[0].Query; q.Get("resourceVersion") != "7" || q.Get("allowWatchBookmarks") != "true" || q.Get("labelSelector") != "a=b" {
		t.Errorf("asked with %v", q)
	}
}

func TestWatchIsClosedByItsCaller(t *testing.T) {
	t.Parallel()
	body, step := watching(`{"type":"ADDED","object":{}}{"type":"ADDED","object":{}}`)
	for range Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, step))).Watch(t.Context(), "") {
		break
	}
	if !body.done {
		t.Error("the stream is left open")
	}
}

func TestWatchRefused(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]wire.HandlerFunc{"gone": expired, "no stream": answer(`{}`)} {
		n := 0
		for _, err := range Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, step))).Watch(t.Context(), "1") {
			if n++; err == nil {
				t.Errorf("%s: there is no error", name)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d events", name, n)
		}
	}
}

// Bug: a Status that has a reason but no code was no error.
func TestStatusErrorWithoutCode(t *testing.T) {
	t.Parallel()
	for status, gone := range map[string]bool{
		`{"kind":"Status","message":"too old","reason":"Expired"}`:            true,
		`{"kind":"Status","message":"too old","reason":"Expired","code":410}`: true,
		`{"kind":"Status","message":"too old","code":410}`:                    true,
		`{"kind":"Status","message":"etcd","code":500}`:                       false,
		`{}`:   false,
		`null`: false,
		`7`:    false,
	} {
		err := wire.Stream{Resource: podResource}.StatusError([]byte(status))
		if HasReason(err, metav1.StatusReasonGone) != gone {
			t.Errorf("%s: it is gone: %t: %v", status, !gone, err)
		}
		wantError(t, err, "watch pods")
	}
}

func TestPagesOfWhatIsNoList(t *testing.T) {
	t.Parallel()
	for _, err := range (wire.Stream{Resource: podResource}).Pages(t.Context(), scripted(t, answer(`{"items":{}}`))) {
		wantError(t, err, "list pods", "read the answer")
	}
}
