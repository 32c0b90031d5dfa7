package engine

import (
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// fakeComponents are components of a control plane that a test may stop.
type fakeComponents struct{ faults.Components }

// The faults of the control plane are planned where components may be stopped. Naming one of them leaves out the others.
func TestPlannedKinds(t *testing.T) {
	t.Parallel()
	ofPlane := faults.FamilyOf(faults.EtcdKilled).Describe().Kinds
	for name, test := range map[string]struct {
		settings Settings
		want     []faults.Kind
	}{
		"default":          {Settings{}, faults.DefaultKinds()},
		"one kind":         {Settings{Only: []faults.Kind{faults.Crash}}, []faults.Kind{faults.Crash}},
		"an optional kind": {Settings{OptIn: []faults.Kind{faults.WatchTwice}}, append(faults.DefaultKinds(), faults.WatchTwice)},
		"components":       {Settings{Components: fakeComponents{}}, append(faults.DefaultKinds(), ofPlane...)},
		"all but one kind": {
			Settings{Except: []faults.Kind{faults.Crash}},
			slices.DeleteFunc(faults.DefaultKinds(), func(k faults.Kind) bool { return k == faults.Crash }),
		},
		"one of two kinds": {
			Settings{Only: []faults.Kind{faults.Crash, faults.Conflict}, Except: []faults.Kind{faults.Conflict}},
			[]faults.Kind{faults.Crash},
		},
		"components, one is named": {
			Settings{Components: fakeComponents{}, Only: []faults.Kind{faults.Crash}, OptIn: []faults.Kind{faults.EtcdPaused}},
			[]faults.Kind{faults.Crash, faults.EtcdPaused},
		},
	} {
		if got := plannedKinds(test.settings); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v are planned, want %v", name, got, test.want)
		}
	}
}
