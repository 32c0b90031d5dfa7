package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// outcome is one request and how it ends.
type outcome struct {
	request kube.Request
	err     error
}

func answer(code int, reason metav1.StatusReason) error {
	return &kube.Error{Code: code, Answer: metav1.Status{Reason: reason, Message: string(reason)}}
}

func notFound(name string) error {
	return &kube.Error{Code: 404, Answer: metav1.Status{Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Name: name}}}
}

// Each trouble is told once, however often it is met, and once when it is over.
func TestTroublesAreToldOnce(t *testing.T) {
	t.Parallel()
	gadgets, err := kube.TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	pods, err := kube.TypeOf[corev1.Pod]()
	if err != nil {
		t.Fatal(err)
	}
	away := &kube.Error{Err: errors.New("connection refused")}
	missing := &kube.Error{Code: 404, Answer: metav1.Status{Reason: metav1.StatusReasonNotFound}}
	list := kube.Request{Verb: kube.VerbList, Resource: gadgets.Resource}
	watching := kube.Request{Verb: kube.VerbWatch, Resource: gadgets.Resource}
	in := func(namespace string) kube.Request {
		r := list
		r.Namespace = namespace
		return r
	}
	patch := func(name string) kube.Request {
		return kube.Request{Verb: kube.VerbPatch, Resource: gadgets.Resource, Subresource: "status", Namespace: "default", Name: name}
	}
	forbidden, busy := answer(403, "Forbidden"), answer(503, "ServiceUnavailable")
	for name, c := range map[string]struct {
		outcomes []outcome
		told     []string
	}{
		"no trouble": {outcomes: []outcome{{list, nil}, {watching, busy}, {watching, answer(410, "Expired")}, {patch("a"), notFound("a")}}},
		"an interrupted request is none": {
			outcomes: []outcome{{list, &kube.Error{Err: context.Canceled}}, {list, context.Canceled}},
		},
		"unreachable": {
			outcomes: []outcome{{list, away}, {watching, away}, {list, away}, {list, busy}, {list, away}},
			told:     []string{"the server cannot be reached: see that it runs at https://there", "the server can be reached again", "the server cannot be reached: see that it runs at https://there"},
		},
		"missing": {
			outcomes: []outcome{{watching, missing}, {list, missing}, {watching, missing}, {list, busy}, {list, away}, {watching, nil}},
			told: []string{
				"the server does not know gadgets.example.com: put its CustomResourceDefinition in place: gadgets crd | kubectl apply -f -",
				"the server cannot be reached: see that it runs at https://there",
				"the server can be reached again", "the server knows gadgets.example.com now",
			},
		},
		"missing, and no definition of this program's": {
			outcomes: []outcome{{kube.Request{Verb: kube.VerbWatch, Resource: pods.Resource}, missing}},
			told:     []string{"the server does not know pods: install what pods belong to"},
		},
		"unauthorized": {
			outcomes: []outcome{{list, answer(401, "Unauthorized")}, {watching, answer(401, "Unauthorized")}, {list, busy}, {list, nil}},
			told:     []string{"the server does not accept the credentials: renew the credentials", "the server accepts the credentials again"},
		},
		"forbidden": {
			outcomes: []outcome{{list, forbidden}, {list, forbidden}, {watching, forbidden}, {list, nil}},
			told: []string{
				"the account may not list gadgets.example.com: give the account a Role",
				"the account may not watch gadgets.example.com: give the account a Role",
				"the account may list gadgets.example.com now",
			},
		},
		"forbidden in one of two namespaces": {
			outcomes: []outcome{{in("one"), forbidden}, {in("two"), nil}, {in("one"), forbidden}, {in("two"), nil}, {in("one"), nil}},
			told: []string{
				"the account may not list gadgets.example.com in namespace one: give the account a Role",
				"the account may list gadgets.example.com in namespace one now",
			},
		},
		"forbidden for one object of two": {
			outcomes: []outcome{{patch("a"), forbidden}, {patch("b"), nil}, {patch("a"), forbidden}, {patch("c"), forbidden}, {patch("a"), nil}},
			told: []string{
				"the account may not patch gadgets.example.com/status: give the account a Role",
				"the account may patch gadgets.example.com/status now",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			needs := kube.Needs{Defines: []kube.Type{gadgets}}
			watcher := newTroubles(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: brief})), "https://there", "gadgets crd", needs)
			next := 0
			h := watcher.watchOver(kube.HandlerFunc(func(context.Context, *kube.Request) (*kube.Response, error) {
				return nil, c.outcomes[next].err
			}))
			for next = range c.outcomes {
				_, _ = h.Do(t.Context(), &c.outcomes[next].request)
			}
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(c.told) {
				t.Fatalf("told:\n%s", cmp.Diff(c.told, lines))
			}
			for i, want := range c.told {
				headline, remedy, _ := strings.Cut(want, ": ")
				if !strings.Contains(lines[i], headline) || !strings.Contains(lines[i], remedy) {
					t.Errorf("told %s\nwant %s", lines[i], want)
				}
			}
		})
	}
}

func brief(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A request that the caller gave up says nothing about the server.
func TestGivenUpRequestIsNoTrouble(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	watcher := newTroubles(slog.New(slog.NewTextHandler(&log, nil)), "", "", kube.Needs{})
	ctx, cancel := context.WithCancel(t.Context())
	h := watcher.watchOver(kube.HandlerFunc(func(context.Context, *kube.Request) (*kube.Response, error) {
		cancel()
		return nil, fmt.Errorf("cut off: %w", &kube.Error{Err: errors.New("connection reset")})
	}))
	_, _ = h.Do(ctx, &kube.Request{Verb: kube.VerbList})
	if log.Len() > 0 {
		t.Errorf("told: %s", &log)
	}
}
