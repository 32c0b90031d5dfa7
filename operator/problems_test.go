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
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

// outcome is one request and how it ends.
type outcome struct {
	request wire.Request
	err     error
}

func answer(code int, reason metav1.StatusReason) error {
	return &wire.Error{Code: code, Answer: metav1.Status{Reason: reason, Message: string(reason)}}
}

func refused(message string) error {
	return &wire.Error{Code: 403, Answer: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: message}}
}

func notFound(name string) error {
	return &wire.Error{Code: 404, Answer: metav1.Status{Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Name: name}}}
}

// Each problem is logged once, however often it occurs, and once when it is over.
func TestConnectionProblemsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	gadgets, err := kube.TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	pods, err := kube.TypeOf[corev1.Pod]()
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := kube.TypeOf[certificate]()
	if err != nil {
		t.Fatal(err)
	}
	away := &wire.Error{Err: errors.New("connection refused")}
	missing := &wire.Error{Code: 404, Answer: metav1.Status{Reason: metav1.StatusReasonNotFound}}
	list := wire.Request{Verb: wire.VerbList, Resource: gadgets.Resource}
	watching := wire.Request{Verb: wire.VerbWatch, Resource: gadgets.Resource}
	in := func(namespace string) wire.Request {
		r := list
		r.Namespace = namespace
		return r
	}
	patch := func(name string) wire.Request {
		return wire.Request{Verb: wire.VerbPatch, Resource: gadgets.Resource, Subresource: "status", Namespace: "default", Name: name}
	}
	busy := answer(503, "ServiceUnavailable")
	forbidden := refused(`gadgets.example.com is forbidden: User "system:serviceaccount:x:y" cannot list resource "gadgets" in API group "example.com" at the cluster scope`)
	quota := refused(`gadgets.example.com "a" is forbidden: exceeded quota: q, requested: count/gadgets.example.com=1, used: count/gadgets.example.com=1, limited: count/gadgets.example.com=1`)
	for name, c := range map[string]struct {
		outcomes []outcome
		log      []string
	}{
		"no problem": {outcomes: []outcome{{list, nil}, {watching, busy}, {watching, answer(410, "Expired")}, {patch("a"), notFound("a")}}},
		"an interrupted request is none": {
			outcomes: []outcome{{list, &wire.Error{Err: context.Canceled}}, {list, context.Canceled}},
		},
		"unreachable": {
			outcomes: []outcome{{list, away}, {watching, away}, {list, away}, {list, busy}, {list, away}},
			log:      []string{"the server cannot be reached: see that it runs at https://there", "the server can be reached again", "the server cannot be reached: see that it runs at https://there"},
		},
		"missing": {
			outcomes: []outcome{{watching, missing}, {list, missing}, {watching, missing}, {list, busy}, {list, away}, {watching, nil}},
			log: []string{
				"the server does not know gadgets.example.com: put its CustomResourceDefinition in place: gadgets crd | kubectl apply -f -",
				"the server cannot be reached: see that it runs at https://there",
				"the server can be reached again", "the server knows gadgets.example.com now",
			},
		},
		"missing, and the definition of another project": {
			outcomes: []outcome{{wire.Request{Verb: wire.VerbWatch, Resource: certificates.Resource}, missing}},
			log:      []string{"the server does not know certificates.cert-manager.io: install what certificates.cert-manager.io belong to"},
		},
		"missing, when somebody asks for all kinds of the version": {
			outcomes: []outcome{{wire.Request{Verb: wire.VerbGet, Resource: wire.Resource{GroupVersionKind: gadgets.Resource.GroupVersion().WithKind("")}}, missing}},
			log:      []string{"the server does not know example.com/v1: install the definitions of example.com/v1"},
		},
		"missing, and no definition of this program's": {
			outcomes: []outcome{{wire.Request{Verb: wire.VerbWatch, Resource: pods.Resource}, missing}},
			log:      []string{"the server does not know pods: install what pods belong to"},
		},
		"unauthorized": {
			outcomes: []outcome{{list, answer(401, "Unauthorized")}, {watching, answer(401, "Unauthorized")}, {list, busy}, {list, nil}},
			log:      []string{"the server does not accept the credentials: renew the credentials", "the server accepts the credentials again"},
		},
		"forbidden": {
			outcomes: []outcome{{list, forbidden}, {list, forbidden}, {watching, forbidden}, {list, nil}},
			log: []string{
				"the account may not list gadgets.example.com: give the account a Role",
				"the account may not watch gadgets.example.com: give the account a Role",
				"the account may list gadgets.example.com now",
			},
		},
		"forbidden in one of two namespaces": {
			outcomes: []outcome{{in("one"), forbidden}, {in("two"), nil}, {in("one"), forbidden}, {in("two"), nil}, {in("one"), nil}},
			log: []string{
				"the account may not list gadgets.example.com in namespace one: give the account a Role",
				"the account may list gadgets.example.com in namespace one now",
			},
		},
		"forbidden, then allowed but against a quota": {
			outcomes: []outcome{{patch("a"), forbidden}, {patch("a"), quota}, {patch("a"), quota}},
			log: []string{
				"the account may not patch gadgets.example.com/status: give the account a Role",
				"the account may patch gadgets.example.com/status now",
			},
		},
		"forbidden for one object of two": {
			outcomes: []outcome{{patch("a"), forbidden}, {patch("b"), nil}, {patch("a"), forbidden}, {patch("c"), forbidden}, {patch("a"), nil}},
			log: []string{
				"the account may not patch gadgets.example.com/status: give the account a Role",
				"the account may patch gadgets.example.com/status now",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			needs := kube.Needs{Defines: []kube.Type{gadgets, certificates}}
			reporter := problems.NewReporter(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: brief})), "https://there", "gadgets crd", needs, nil)
			next := 0
			h := reporter.Handler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
				return nil, c.outcomes[next].err
			}))
			for next = range c.outcomes {
				_, _ = h.Do(t.Context(), &c.outcomes[next].request)
			}
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(c.log) {
				t.Fatalf("log:\n%s", cmp.Diff(c.log, lines))
			}
			for i, want := range c.log {
				headline, remedy, _ := strings.Cut(want, ": ")
				if !strings.Contains(lines[i], headline) || !strings.Contains(lines[i], remedy) {
					t.Errorf("logged %s\nwant %s", lines[i], want)
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

// A request that its caller gave up proves nothing about the server.
func TestRequestOfACallerWhoGaveUpIsNoProblem(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	reporter := problems.NewReporter(slog.New(slog.NewTextHandler(&log, nil)), "", "", kube.Needs{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	h := reporter.Handler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		cancel()
		return nil, fmt.Errorf("cut off: %w", &wire.Error{Err: errors.New("connection reset")})
	}))
	_, _ = h.Do(ctx, &wire.Request{Verb: wire.VerbList})
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
}

// Quota, Pod security and the like were reported as missing permissions.
func TestForbiddenByAdmissionIsNoMissingPermission(t *testing.T) {
	t.Parallel()
	gadgets, err := kube.ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{
		`pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`,
		`configmaps "x" is forbidden: unable to create new content in namespace n because it is being terminated`,
		`pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "User" must set it)`,
		`deployments.apps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not on Fridays`,
		`admission webhook "w.example.com" denied the request: no`,
		`roles.rbac.authorization.k8s.io "x" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held`,
	} {
		var log bytes.Buffer
		reporter := problems.NewReporter(slog.New(slog.NewTextHandler(&log, nil)), "", "", kube.Needs{}, nil)
		h := reporter.Handler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
			return nil, refused(message)
		}))
		_, _ = h.Do(t.Context(), &wire.Request{Verb: wire.VerbCreate, Resource: gadgets, Namespace: "n", Name: "x"})
		if log.Len() > 0 {
			t.Errorf("logged: %s", &log)
		}
	}
}
