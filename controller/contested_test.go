package controller_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Somebody who sets a field of a child again and again is named once, with the field and the child. Before, both went on for
// ever, and the log of the operator had nothing.
func TestContestedField(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c.WithFieldManager("gardener"), controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose")))
			return controller.Done(), err
		}, controller.Owns[Plant]()))
		plants := kube.Namespaced[Plant](c.WithFieldManager("deer"), "default")
		for range 20 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			rose, err := plants.Modify(t.Context(), "rose", func(p *Plant) error {
				if p.Spec.Height != 1 {
					t.Errorf("the height is %d: it was not set back", p.Spec.Height)
				}
				p.Spec.Height = 2
				return nil
			})
			if err != nil {
				t.Fatal(rose, err)
			}
		}
		synctest.Wait()
		var warnings []string
		for _, line := range p.log.lines(slog.LevelWarn) {
			if strings.Contains(line, "set back") {
				warnings = append(warnings, line)
			}
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], ".spec.height") || !strings.Contains(warnings[0], "deer") || !strings.Contains(warnings[0], "rose") {
			t.Errorf("the warnings are %q", warnings)
		}
	})
}
