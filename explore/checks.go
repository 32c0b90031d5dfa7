package explore

import (
	"errors"
	"fmt"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/kube"
)

// State holds the objects of a run at one moment. A check must not keep it.
type State struct {
	state history.State
	// failure is why an object could not be decoded.
	failure *error
}

// Objects returns the objects of a type that exist in a state, by name. The caller may change them. A check
// in which an object does not fit its type has failed, whatever the check returns.
func Objects[T any, P kube.ObjectOf[T]](s State) []*T {
	resource, err := kube.ResourceOf[T, P]()
	if err != nil {
		*s.failure = err
		return nil
	}
	var objects []*T
	for _, v := range s.state.Objects() {
		if v.Resource != resource.String() {
			continue
		}
		object := new(T)
		data, err := kube.Marshal(v.Object)
		if err == nil {
			err = kube.Unmarshal(data, object)
		}
		if err != nil {
			*s.failure = fmt.Errorf("decode %s %s: %w", resource, v.Name, err)
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

// Always adds a check that must hold at every version of every object of each run. The check follows the
// order in which the API server made the versions. A violation is a finding at once, also in the runs without
// faults. Runs are concurrent, so checks are called concurrently.
//
//	explore.Always("a page has an owner", func(s explore.State) error {
//		for _, page := range explore.Objects[corev1.ConfigMap](s) { … }
//	})
func Always(name string, check func(State) error) Option {
	return addCheck(name, engine.Always, check)
}

// Sometimes adds a condition that must hold at one version of one run at least. Otherwise a complete
// exploration fails: it has not tried what the condition stands for.
func Sometimes(name string, condition func(State) error) Option {
	return addCheck(name, engine.Sometimes, condition)
}

// AtRest adds a check of the rest after each step. A check that fails is repeated for as long as a wrong
// state may take to become right.
func AtRest(name string, check func(State) error) Option {
	return addCheck(name, engine.AtRest, check)
}

// AtEnd adds a check of the rest after the last step, as [AtRest] does. The last step of the default scenario
// deletes the samples.
func AtEnd(name string, check func(State) error) Option {
	return addCheck(name, engine.AtEnd, check)
}

func addCheck(name string, moment engine.Moment, check func(State) error) Option {
	return func(e *exploration) error {
		if name == "" || check == nil {
			return errors.New("a check needs a name and a function")
		}
		e.settings.Checks = append(e.settings.Checks, engine.Check{Name: name, Moment: moment, Run: func(state history.State) error {
			s := State{state: state, failure: new(error)}
			if err := check(s); err != nil {
				return err
			}
			return *s.failure
		}})
		return nil
	}
}
