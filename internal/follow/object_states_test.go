package follow_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/follow"
)

// The states of one object: with its content while it exists, and without it from its deletion on.
func TestObjectStates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			stream(endOfList("5"), added(object("a", 6)), modified(object("a", 7)), deleted(object("a", 8)), added(object("a", 9)), gone()),
			stream(endOfList("20"), added(object("a", 21)), gone()), // deleted unseen
			stream(added(object("a", 21)), endOfList("30")),
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var got []string
		for state, err := range follow.ObjectStates(ctx, s, things) {
			switch {
			case err != nil:
				got = append(got, "error")
				continue
			case state.Object == nil:
				got = append(got, "none")
			case strings.Contains(string(state.Object), `"name":"a"`):
				got = append(got, "a")
			}
			got[len(got)-1] += state.ResourceVersion
		}
		if text := strings.Join(got, " "); text != "none5 a6 a7 none8 a9 none9 none20 a21" {
			t.Errorf("the states are %s", text)
		}
	})
}
