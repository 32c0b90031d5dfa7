package schedule_test

import (
	"testing"

	"github.com/yare-go/yare/internal/explore/schedule"
)

func TestFaultString(t *testing.T) {
	t.Parallel()
	point := &schedule.Point{Step: 1, Verb: "patch", Resource: "webapps.example.com", Subresource: "status", Name: "web", Occurrence: 2}
	object := &schedule.Object{Resource: "deployments.apps", Name: "web"}
	for _, test := range []struct {
		fault schedule.Fault
		want  string
	}{
		{schedule.Fault{Kind: schedule.Crash, At: point}, "crash at patch webapps.example.com/status web (step 2, occurrence 2), restart at once"},
		{schedule.Fault{Kind: schedule.Crash, Restart: schedule.RestartAtRest}, "crash after the last write of step 1, restart at rest"},
		{schedule.Fault{Kind: schedule.Refused503, At: point}, "refused-503 of patch webapps.example.com/status web (step 2, occurrence 2)"},
		{schedule.Fault{Kind: schedule.LeaderCut, At: point}, "leader-cut at patch webapps.example.com/status web (step 2, occurrence 2)"},
		{schedule.Fault{Kind: schedule.EtcdPaused, Step: 1}, "etcd-paused after step 2"},
		{schedule.Fault{Kind: schedule.ForeignDelete, Object: object}, "foreign-delete of deployments.apps/web after step 1"},
		{schedule.Fault{Kind: schedule.WatchLag, Stream: "deployments.apps", Step: 1}, "watch-lag of deployments.apps in step 2"},
	} {
		if got := test.fault.String(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.fault, got, test.want)
		}
	}
}
