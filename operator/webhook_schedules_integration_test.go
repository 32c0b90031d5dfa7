package operator_test

import (
	"context"
	"fmt"
	"os"
	"testing"


	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// figure returns how often a schedule happens: small, or full if YARE_WEBHOOK_FULL is set.
func figure(small, full int) int {
	if os.Getenv("YARE_WEBHOOK_FULL") != "" {
		return full
	}
	return small
}

// The schedules of failures of a whole program with webhooks, against a real API server. docs/reliability.md has the table
// of all schedules.
func TestWebhookSchedules(t *testing.T) {
	t.Parallel()
	cluster, network := newScheduleServer(t)
	for _, each := range []struct {
		name string
		run  func(*testing.T, *yaretest.Cluster, *serviceNetwork)
	}{
		{"rolling restarts", rollingRestarts},
	} {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			each.run(t, cluster, network)
		})
	}
}

// Row 9: two replicas are replaced one after the other, while kube-proxy is late and fast and slow users write. No call
// fails.
func rollingRestarts(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newSite[operator.Pumps](t, cluster, network, "pumps-restarts")
	s.apply("second")
	pods := []*pod{s.start("second"), s.start("second")}
	yaretest.Eventually(t, func() error { return s.isRefused(6) })
	users := startLoad(t, 8, func(ctx context.Context, caller, n int) error {
		if n%2 == 0 {
			return s.isRefused(6)
		}
		_, err := s.pumps.Create(ctx, s.newPump(fmt.Sprintf("pump-%d-%d", caller, n), 5), kube.DryRun())
		return err
	})
	for range figure(3, 20) {
		pods = s.roll("second", pods...)
	}
	users.mustNotFail()
}
