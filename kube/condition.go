package kube

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
)

// SetCondition sets the condition of that type, by the Kubernetes API conventions. Its status is
// True if holds is true, else False. The time of the last transition stays unless the status
// changes, so that a status comes to rest. The condition records the generation of owner that it
// was observed at. SetCondition reports whether it has changed the conditions, such as for an event or a log line.
//
// The message is for people. It can be the text of any error: SetCondition cuts a message that has more than 32,768
// bytes, and ends it with "…". Otherwise the server would refuse the whole status. The type and the reason are for
// programs, and stay as they are. The reason is one word in CamelCase, is not empty, and has at most 1,024 characters.
// The type is a qualified name such as Ready, and has at most 316 characters. The limits are those of the type
// Condition of metav1.
//
// Set a condition once in a reconcile: a condition that is set to true and then to false has had a
// transition each time, and never comes to rest. The time is the time of the reconcile whose context ctx is, so a test
// can move it. Outside of a reconcile it is the real time.
func SetCondition(
	ctx context.Context, conditions *[]metav1.Condition, owner Object, conditionType string, holds bool,
	reason, message string,
) (changed bool) {
	now := metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: cutMessage(message),
		ObservedGeneration: owner.GetGeneration(),
		LastTransitionTime: metav1.NewTime(clock.From(ctx).Now().Truncate(time.Second)), // what JSON keeps
	}
	if holds {
		now.Status = metav1.ConditionTrue
	}
	for i, before := range *conditions {
		if before.Type != conditionType {
			continue
		}
		if before.Status == now.Status {
			now.LastTransitionTime = before.LastTransitionTime
		}
		(*conditions)[i] = now
		return now != before
	}
	*conditions = append(*conditions, now)
	return true
}

// maxMessage is how many bytes the message of a condition may have. Schemas count characters, and the validation of
// built-in kinds counts bytes.
const maxMessage = 32768

// cutMessage returns a message that is not longer than maxMessage. A message that is cut ends with "…" behind a whole
// rune.
func cutMessage(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD") // an encoder of JSON replaces invalid bytes too
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	end := maxMessage - len(mark)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + mark
}
