package faults_test

import (
	"testing"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

func TestFaultString(t *testing.T) {
	t.Parallel()
	point := &proxy.Point{Step: 1, Verb: "patch", Resource: "webapps.example.com", Subresource: "status", Name: "web", Occurrence: 2}
	object := &faults.Object{Resource: "deployments.apps", Name: "web"}
	for _, test := range []struct {
		fault faults.Fault
		want  string
	}{
		{faults.Fault{Kind: faults.Crash, At: point}, "crash at patch webapps.example.com/status web (step 2, occurrence 2), restart at once"},
		{faults.Fault{Kind: faults.Crash, Restart: faults.RestartAtRest}, "crash after the last write of step 1, restart at rest"},
		{faults.Fault{Kind: faults.Refused503, At: point}, "refused-503 of patch webapps.example.com/status web (step 2, occurrence 2)"},
		{faults.Fault{Kind: faults.LeaderCut, At: point}, "leader-cut at patch webapps.example.com/status web (step 2, occurrence 2)"},
		{faults.Fault{Kind: faults.EtcdPaused, Step: 1}, "etcd-paused after step 2"},
		{faults.Fault{Kind: faults.ForeignDelete, Object: object}, "foreign-delete of deployments.apps/web after step 1"},
		{faults.Fault{Kind: faults.WatchLag, Stream: "deployments.apps", Step: 1}, "watch-lag of deployments.apps in step 2"},
	} {
		if got := test.fault.String(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.fault, got, test.want)
		}
	}
}
