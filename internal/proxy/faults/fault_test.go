package faults_test

import (
	"encoding/json"
	"reflect"
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

// A fault is read as it was written. Regression: the part of a fault of the external system was written as a number of events,
// and a fault of a stranger was written without its stage. Such files are still read.
func TestFaultsOfFiles(t *testing.T) {
	t.Parallel()
	object := &faults.Object{Resource: "secrets", Name: "web"}
	for _, f := range []faults.Fault{
		{Kind: faults.WatchLag, Stream: "secrets", Events: 2, Step: 1},
		{Kind: faults.OutsideCut, Part: 3, Step: 1},
		{Kind: faults.StrangerItem, Stage: faults.StageAdd, Object: object},
		{Kind: faults.StrangerMetadata, Stage: faults.StageRelease, Step: 1},
	} {
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var read faults.Fault
		if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, f) {
			t.Errorf("%s is read as %+v, %v, want %+v", text, read, err, f)
		}
	}
	for text, want := range map[string]faults.Fault{
		`{"kind":"watch-lag","stream":"secrets","events":2}`:                             {Kind: faults.WatchLag, Stream: "secrets", Events: 2},
		`{"kind":"outside-cut","step":1,"events":3}`:                                     {Kind: faults.OutsideCut, Part: 3, Step: 1},
		`{"kind":"stranger-item","object":{"resource":"secrets","name":"web"}}`:          {Kind: faults.StrangerItem, Stage: faults.StageAdd, Object: object},
		`{"kind":"stranger-item","step":1,"object":{"resource":"secrets","name":"web"}}`: {Kind: faults.StrangerItem, Stage: faults.StageAdd, Object: object, Step: 1},
		`{"kind":"stranger-metadata"}`:                                                   {Kind: faults.StrangerMetadata, Stage: faults.StageReconcile},
		`{"kind":"stranger-metadata","step":2}`:                                          {Kind: faults.StrangerMetadata, Stage: faults.StageRelease, Step: 2},
	} {
		var read faults.Fault
		if err := json.Unmarshal([]byte(text), &read); err != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("%s is read as %+v, %v, want %+v", text, read, err, want)
		}
	}
}
