package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// The lines of a reconcile, the author's and the controller's, name the controller, the object and
// the reconcile, also below a timeout.
func TestLogOfAReconcile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		create(t, s.client(), garden("eden"))
		failed := errors.New("no water")
		p := start(t, s.client(), controller.New(func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Action, error) {
			controller.Log(ctx).Info("watering", "liters", 3)
			return controller.Done(), failed
		}, controller.Timeout(time.Minute)))
		synctest.Wait()
		time.Sleep(time.Second) // one more attempt
		synctest.Wait()
		about := regexp.MustCompile(`controller=garden namespace=default name=eden reconcileID=[0-9a-f]{16}`)
		lines := p.log.lines(slog.LevelInfo)
		errs := p.log.lines(slog.LevelError)
		if len(lines) < 2 || len(errs) < 2 {
			t.Fatalf("logged %q and %q", lines, errs)
		}
		first := about.FindString(lines[0])
		if first == "" || !strings.Contains(lines[0], "liters=3") || about.FindString(errs[0]) != first {
			t.Errorf("logged %q and %q", lines[0], errs[0])
		}
		if about.FindString(lines[1]) == first {
			t.Errorf("two reconciles have one ID: %q", lines[:2])
		}
		// The error of a reconcile has one line, also with -v.
		for _, line := range p.log.lines(slog.LevelDebug) {
			if strings.Contains(line, first) {
				t.Errorf("a second line about the same error: %s", line)
			}
		}
	})
	if controller.Log(t.Context()) != slog.Default() {
		t.Error("outside of a reconcile it is not the default logger")
	}
}
