package history_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube/wire"
)

// recordedResources returns the resources of the server that the tests of the recorder share.
func recordedResources() (configMaps, leases wire.Resource) {
	configMaps = wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"}
	leases = wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, Plural: "leases"}
	return configMaps, leases
}

// testRecorder calls f with a server, a recording of the namespace run-1, the recorder's stream of
// ConfigMaps, and a function that stores a ConfigMap with a value.
func testRecorder(t *testing.T, f func(t *testing.T, s *fakeserver.Server, r *history.Recording, stream *fakeserver.Stream, store func(value string))) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		configMaps, leases := recordedResources()
		recorder, err := history.NewRecorderWith(t.Context(), s.Client(), []wire.Resource{configMaps, leases})
		if err != nil {
			t.Fatal(err)
		}
		defer recorder.Close()
		f(t, s, recorder.Record("run-1"), s.Stream(fakeserver.StreamID{Plural: "configmaps", Representation: wire.Full}), func(value string) {
			s.Store(configMaps, "run-1", "c", map[string]any{"data": map[string]any{"value": value}})
		})
	})
}

// values returns the values of the ConfigMap, in the order of the versions.
func values(r *history.Recording) []string {
	var all []string
	for _, v := range r.Versions() {
		data, _ := v.Object["data"].(map[string]any)
		value, _ := data["value"].(string)
		if v.IsDeleted {
			value = "deleted"
		}
		all = append(all, value)
	}
	return all
}

func TestCatchUpWaitsForEachStream(t *testing.T) {
	testRecorder(t, func(t *testing.T, s *fakeserver.Server, r *history.Recording, stream *fakeserver.Stream, store func(string)) {
		for _, change := range []func(){
			func() { store("1") },
			func() { store("2"); store("3") },
			func() { s.Remove("configmaps", "run-1", "c", nil) },
		} {
			before := len(r.Versions())
			stream.Freeze()
			change()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if err := r.CatchUp(ctx, "configmaps"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %q the recorder has caught up with a watch that is silent: %v", values(r), err)
			}
			cancel()
			stream.Thaw()
			if err := r.CatchUp(t.Context(), "configmaps"); err != nil || len(r.Versions()) == before {
				t.Errorf("after the change the values are %q, %v", values(r), err)
			}
		}
		if got := values(r); !slices.Equal(got, []string{"1", "2", "3", "deleted"}) {
			t.Errorf("the values are %q", got)
		}
	})
}

func TestLostVersionsAreAGap(t *testing.T) {
	testRecorder(t, func(t *testing.T, _ *fakeserver.Server, r *history.Recording, stream *fakeserver.Stream, store func(string)) {
		store("1")
		synctest.Wait()
		stream.Hold()
		stream.Cut()
		store("2")
		store("3")
		stream.Release()
		if err := r.CatchUp(t.Context(), "configmaps"); err != nil {
			t.Fatal(err)
		}
		if got := values(r); !slices.Equal(got, []string{"1", "2", "3"}) || len(r.History().Gaps) > 0 {
			t.Errorf("after a watch that was resumed the values are %q, with gaps %q", got, r.History().Gaps)
		}
		stream.Hold()
		stream.Expire()
		store("4")
		store("5")
		stream.Release()
		if err := r.CatchUp(t.Context(), "configmaps"); err != nil {
			t.Fatal(err)
		}
		if got := values(r); !slices.Equal(got, []string{"1", "2", "3", "5"}) || !slices.Equal(r.History().Gaps, []string{"configmaps"}) {
			t.Errorf("after a version that was too old the values are %q, with gaps %q", got, r.History().Gaps)
		}
	})
}

func TestLastChangeAndSteps(t *testing.T) {
	testRecorder(t, func(t *testing.T, s *fakeserver.Server, r *history.Recording, _ *fakeserver.Stream, store func(string)) {
		_, leases := recordedResources()
		began := r.LastChange()
		time.Sleep(time.Second)
		s.Store(leases, "run-1", "leader", map[string]any{"spec": map[string]any{"holderIdentity": "a"}})
		synctest.Wait()
		if at := r.LastChange(); !at.Equal(began) {
			t.Errorf("a Lease counts as a change, %s after the start", at.Sub(began))
		}
		r.BeginStep(0)
		store("1")
		synctest.Wait()
		if at := r.LastChange(); at.Sub(began) != time.Second {
			t.Errorf("the last change was %s after the start, want 1s", at.Sub(began))
		}
		r.BeginStep(1)
		store("2")
		synctest.Wait()
		var steps []int
		for _, v := range r.Versions() {
			steps = append(steps, v.Step)
		}
		if !slices.Equal(steps, []int{-1, 0, 1}) {
			t.Errorf("the steps of the versions are %v", steps)
		}
	})
}

// A recording holds its own namespace only, and what exists in the namespace when it begins.
func TestRecordingsOfSeveralNamespaces(t *testing.T) {
	testRecorder(t, func(t *testing.T, s *fakeserver.Server, first *history.Recording, _ *fakeserver.Stream, store func(string)) {
		configMaps, _ := recordedResources()
		storeSecond := func(value string) {
			s.Store(configMaps, "run-2", "c", map[string]any{"data": map[string]any{"value": value}})
		}
		store("1")
		storeSecond("old")
		storeSecond("2")
		synctest.Wait()
		second := first.Recorder().Record("run-2")
		storeSecond("3")
		synctest.Wait()
		second.Close()
		storeSecond("4")
		if err := second.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := values(first); !slices.Equal(got, []string{"1"}) {
			t.Errorf("the values of the first recording are %q", got)
		}
		if got := values(second); !slices.Equal(got, []string{"2", "3"}) {
			t.Errorf("the values of the second recording are %q", got)
		}
	})
}

// A caller that waits for a silent watch does not keep others from their answer once the watch speaks.
func TestCallersOfCatchUp(t *testing.T) {
	testRecorder(t, func(t *testing.T, _ *fakeserver.Server, r *history.Recording, stream *fakeserver.Stream, store func(string)) {
		stream.Freeze()
		store("1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := make(chan error, 3)
		go func() { errs <- r.CatchUp(ctx, "configmaps") }()
		for range 2 {
			go func() { errs <- r.CatchUp(t.Context(), "configmaps") }()
		}
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller whose time is over gets %v", err)
		}
		stream.Thaw()
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// A hash of a Secret without a key let a reader of a report find short passwords by hashing all of them.
func TestHashesOfSecretsNeedTheKeyOfTheirRecorder(t *testing.T) {
	t.Parallel()
	const password = "cGFzc3dvcmQ="
	hashes := make(map[string]bool)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			configMaps, leases := recordedResources()
			recorder, err := history.NewRecorderWith(t.Context(), fakeserver.New().Client(), []wire.Resource{configMaps, leases})
			if err != nil {
				t.Fatal(err)
			}
			defer recorder.Close()
			first := history.HashOfSecret(recorder.Record("run-1").History(), password)
			if second := history.HashOfSecret(recorder.Record("run-2").History(), password); second != first {
				t.Errorf("one value has the hashes %s and %s in two runs of one exploration", first, second)
			}
			hashes[first] = true
		})
	}
	if len(hashes) != 2 {
		t.Errorf("one value has the hash %v in two explorations", hashes)
	}
}

// The lines about an external system are compared as the fields of an object are. Their order does not count, and an
// unchanged text is no version.
func TestExternalSystemIsAnObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		configMaps, leases := recordedResources()
		recorder, err := history.NewRecorderWith(t.Context(), fakeserver.New().Client(), []wire.Resource{configMaps, leases})
		if err != nil {
			t.Fatal(err)
		}
		defer recorder.Close()
		state := func(namespace string, texts ...string) history.State {
			r := recorder.Record(namespace)
			for _, text := range texts {
				r.RecordExternalSystem(text)
			}
			if n := len(r.Versions()); n != 1 {
				t.Errorf("%q are %d versions", texts, n)
			}
			return r.State()
		}
		first, second := state("run-1", "role run-1-a\ndatabase b\n", "database b\nrole run-1-a"), state("run-2", "role run-2-a\ndatabase b")
		masks, err := history.NewMasks([]history.State{first, second}, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, lines(masks.Compare(first, second)))
		expect(t, lines(masks.Compare(first, state("run-3", "role run-3-a\nrole run-3-b"))),
			"outside/system: data.database b is missing, want 1", "outside/system: data.role *-b should not be set, and is 1")
	})
}
