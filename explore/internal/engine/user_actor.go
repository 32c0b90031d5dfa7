package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// userActor makes the changes of the user in the namespace of a run.
type userActor struct {
	cluster   *cluster
	namespace string
	trace     *trace
	// restartProgram starts a program that waits for its restart.
	restartProgram func() error
	// waitForReaction waits until the program has reacted to a change: see [quietMeter.waitForReaction].
	waitForReaction func(ctx context.Context) error
}

// takeStep makes the changes of the user in a step.
func (u *userActor) takeStep(ctx context.Context, step finding.Step) error {
	for _, raw := range step.Apply {
		object, err := u.cluster.decode(raw, u.namespace)
		if err != nil {
			return err
		}
		api, err := u.cluster.APIOf(object.GroupVersionKind(), u.namespace)
		if err != nil {
			return err
		}
		u.trace.record(finding.Event{
			Lane: finding.User, To: finding.Server, Text: fmt.Sprintf("applies %s/%s", object.GetKind(), object.GetName()),
		})
		if err := u.retryUnanswered(ctx, func() error { return applyAsUser(ctx, api, object) }); err != nil {
			return err
		}
		if step.IsPaced {
			if err := u.waitForReaction(ctx); err != nil {
				return err
			}
		}
	}
	for _, o := range step.Delete {
		u.trace.record(finding.Event{Lane: finding.User, To: finding.Server, Text: "deletes " + o.String()})
		resource, err := u.cluster.resource(o.Resource)
		if err != nil {
			return err
		}
		api := kube.Dynamic(u.cluster.client, resource, u.namespace)
		err = u.retryUnanswered(ctx, func() error { return kube.IgnoreNotFound(api.Delete(ctx, o.Name)) })
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxUserRetry is how long the user tries a request again that a webhook or a conversion has not answered.
	maxUserRetry = 20 * time.Second
	// userRetryInterval is the time between two tries of the user.
	userRetryInterval = 200 * time.Millisecond
)

// retryUnanswered makes a request of the user, and repeats it while a webhook or a conversion does not answer. Before
// each repetition it starts a program that waits for its restart, because the program itself may have to answer.
func (u *userActor) retryUnanswered(ctx context.Context, request func() error) error {
	for until := time.Now().Add(maxUserRetry); ; {
		err := request()
		if !isUnanswered(err) || time.Now().After(until) {
			return err
		}
		u.trace.record(finding.Event{
			Lane: finding.Server, To: finding.User,
			Text: "refuses the request, because a webhook or a conversion does not answer",
		})
		if err := u.restartProgram(); err != nil {
			return err
		}
		if err := clock.SleepReal(ctx, userRetryInterval); err != nil {
			return err
		}
	}
}

// isUnanswered reports whether the API server has refused a request because a webhook or a conversion has not answered
// as it should.
func isUnanswered(err error) bool {
	answer, ok := kube.AsError(err)
	if !ok || answer.Code != http.StatusInternalServerError {
		return false
	}
	return strings.Contains(err.Error(), "failed calling webhook") ||
		strings.Contains(err.Error(), "conversion webhook for")
}
