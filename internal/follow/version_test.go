package follow_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: a version refused with anything but 410 was asked for again for ever, and no list
// was made. Examples are 400 by another implementation of an aggregated API, 500 by a server that
// fails because of the version, and a frame with no event.
func TestRefusedVersionIsGivenUp(t *testing.T) {
	t.Parallel()
	again := stream(added(object("b", 7)), endOfList("9"), hang())
	first := stream(added(object("a", 1)), endOfList("5"))
	for name, refusal := range map[string]answer{
		"400":                      refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest),
		"422":                      refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
		"500":                      refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"500 in the stream":        stream(frame("ERROR", status(500, "InternalError"))),
		"an event of unknown type": stream(frame("RENAMED", object("a", 6))),
		"what is no JSON":          stream(part{bytes: "<html>"}),
		"a bookmark that is none":  stream(frame("BOOKMARK", `{"metadata":7}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripted{
				answers:   []answer{first, refusal, refusal, refusal, refusal, again},
				published: "+a1 = ! ! ! ! +b7 -a1? =",
				asked:     []string{"watch all", "watch from 5", "watch from 5", "watch from 5", "watch from 5", "watch all"},
			}.run(t)
		})
	}
}

// Answers that say nothing about a version do not cost a fresh list, however often they come.
func TestVersionSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]answer{
		"a proxy whose server is away": refuse(http.StatusBadGateway, ""),
		"a server that starts":         refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable),
		"permissions are missing":      refuse(http.StatusForbidden, metav1.StatusReasonForbidden),
		"a connection that breaks":     stream(broken()),
		"a frame that is cut off":      stream(part{bytes: `{"type":"ADDED","obj`}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := scripted{answers: []answer{stream(added(object("a", 1)), endOfList("5"))}, published: "+a1 =", asked: []string{"watch all"}}
			for range 8 {
				c.answers, c.published, c.asked = append(c.answers, failure), c.published+" !", append(c.asked, "watch from 5")
			}
			c.answers, c.published, c.asked = append(c.answers, stream(added(object("b", 6)), hang())), c.published+" +b6", append(c.asked, "watch from 5")
			c.run(t)
		})
	}
}

// A server that takes no version at all costs a list about every half a minute, and not one
// after the other.
func TestServerThatTakesNoVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		h := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Query.Get("resourceVersion") != "" {
				return refuse(500, "InternalError")(r)
			}
			lists++
			return stream(added(object("a", 1)), endOfList("5"))(r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for range follow.Changes(ctx, h, things) {
		}
		if lists < 60 || lists > 200 {
			t.Errorf("%d lists in one hour", lists)
		}
	})
}

func tooLarge(r *wire.Request) (*wire.Response, error) {
	e := statusError(r, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	e.RetryAfter = time.Second
	e.Answer.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}
	return nil, e
}

// A server in a lag behind etcd answers that a version is too large. The answer passes, is not
// reported at first, and costs no list.
func TestLaggingServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name:      "it answers a list",
			answers:   []answer{refuse(422, "Invalid"), tooLarge, tooLarge, page("5", "", object("a", 1)), stream(hang())},
			published: "+a1 =",
			asked:     []string{"watch all", "list", "list", "list"},
		},
		{
			name:      "it answers a streaming list",
			answers:   []answer{tooLarge, tooLarge, stream(added(object("a", 1)), endOfList("5"), hang())},
			published: "+a1 =",
			asked:     []string{"watch all", "watch all", "watch all"},
		},
		{
			name: "it answers a watch",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), pause(time.Minute)),
				tooLarge, tooLarge, stream(added(object("b", 6)), hang()),
			},
			published: "+a1 = +b6",
			asked:     []string{"watch all", "watch from 5", "watch from 5", "watch from 5"},
		},
		{
			name: "it goes on answering so: the version is given up",
			answers: []answer{
				stream(added(object("a", 100)), endOfList("100"), pause(time.Minute)),
				tooLarge, tooLarge, tooLarge, tooLarge, stream(added(object("a", 50)), endOfList("60"), hang()),
			},
			published: "+a100 = ! ~a50 =",
			asked:     []string{"watch all", "watch from 100", "watch from 100", "watch from 100", "watch from 100", "watch all"},
		},
	})
}

// What a new process may assume: it never acts on a past that its predecessor has changed already.
// No list asks for resourceVersion=0, which a server answers from its own past. No list accepts an
// older state than the present state of etcd.
func TestNoListAsksForThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			stream(added(object("a", 1)), endOfList("5"), gone()),
			refuse(422, "Invalid"),
			page("6", "next", object("a", 1)), page("6", "", object("b", 2)),
			stream(broken()),
			stream(hang()),
		}}
		s.probe = page("6", "", object("a", 1))
		lists := 0
		h := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			streaming := r.Query.Get("sendInitialEvents") == "true"
			if r.Verb != wire.VerbList && !streaming {
				return s.Do(ctx, r)
			}
			lists++
			if r.Query.Has("resourceVersion") {
				t.Errorf("a list asks for the resource version %q", r.Query.Get("resourceVersion"))
			}
			// Without a version, a streaming list begins with the present state of etcd: KEP-3157.
			if match := r.Query.Get("resourceVersionMatch"); streaming && match != "NotOlderThan" || !streaming && match != "" {
				t.Errorf("a list has the resourceVersionMatch %q", match)
			}
			return s.Do(ctx, r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range follow.Changes(ctx, h, things) {
		}
		if lists < 5 {
			t.Errorf("only %d lists and probes: %q", lists, s.requests())
		}
	})
}
