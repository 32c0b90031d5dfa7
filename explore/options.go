package explore

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/yaretest"
)

// Option changes what [Run] does. An option that is wrong fails the test.
type Option func(*exploration) error

// set returns an option that is never wrong.
func set(change func(*exploration)) Option {
	return func(e *exploration) error {
		change(e)
		return nil
	}
}

// Only limits the exploration to kinds of faults: groups such as crash and watch, or single kinds such as watch-missed.
// The guide "Exploring" lists them, and so does the error for an unknown name.
func Only(kinds ...string) Option {
	return func(e *exploration) (err error) {
		e.settings.Only, err = parseKinds(kinds)
		return err
	}
}

// Beyond adds kinds of faults that are not among the default ones. For example, no API server does watch-twice, and
// restored needs [Plane]. The guide "Exploring" lists the kinds.
func Beyond(kinds ...string) Option {
	return func(e *exploration) (err error) {
		e.settings.Beyond, err = parseKinds(kinds)
		return err
	}
}

// parseKinds returns the kinds of faults that names of kinds and of groups stand for.
func parseKinds(names []string) (kinds []faults.Kind, err error) {
	for _, name := range names {
		parsed, err := faults.ParseKinds(name)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, parsed...)
	}
	return kinds, nil
}

// Plane explores on c in place of the cluster of [yaretest.Shared], and adds faults that stop components of the control
// plane: the API server and etcd are killed and started again, and etcd is paused, at some writes of the program and
// after each step. These runs come after all others, one at a time. The cluster must be a cluster that [yaretest.New]
// has started. Nobody else may use the cluster meanwhile.
//
//	explore.Run(t, explore.Binary{Path: "."}, explore.Plane(yaretest.New(t)))
func Plane(c *yaretest.Cluster) Option {
	return func(e *exploration) error {
		if c == nil {
			return errors.New("the cluster of explore.Plane is nil: give one that yaretest.New has started")
		}
		plane, err := c.ControlPlane()
		if err != nil {
			return fmt.Errorf("explore.Plane stops the API server and etcd: %w", err)
		}
		e.cluster, e.settings.Plane = c, plane
		return nil
	}
}

// Budget sets how long new runs are begun. Default: until all planned runs are made.
func Budget(d time.Duration) Option {
	return set(func(e *exploration) { e.settings.Budget = d })
}

// Seed sets the number by which the exploration chooses what it does not do completely. Default: 0.
func Seed(n uint64) Option {
	return set(func(e *exploration) { e.settings.Seed = n })
}

// Parallel sets how many runs are made at a time. A program with a fixed port needs 1. Default: two to eight
// for each processor, by the load, or one if the program writes objects in no namespace.
func Parallel(n int) Option {
	return func(e *exploration) error {
		if n < 1 {
			return fmt.Errorf("the number of runs at a time is %d: use 1 or more", n)
		}
		e.settings.Parallel = n
		return nil
	}
}

// Values sets the values of a field of the samples in transitions, such as
// Values("spec.schedule", "*/5 * * * *"), in place of the values that the schema suggests. Without values the
// field, and what is below it, keeps the value of the sample.
func Values(field string, values ...any) Option {
	return func(e *exploration) error {
		if e.settings.Values == nil {
			e.settings.Values = make(map[string][]any)
		}
		e.settings.Values[field] = append(e.settings.Values[field], values...)
		return nil
	}
}

// Ignore leaves out a difference that is intended in all runs, with the reason. The path names a field,
// such as "status.lastBackup", or a resource with a name and a field, such as "secrets/web data.password".
// An asterisk stands for any text, and the field * for the whole object.
func Ignore(path, reason string) Option {
	return func(e *exploration) error {
		objects, field, hasObjects := strings.Cut(path, " ")
		if !hasObjects {
			objects, field = "", path
		}
		e.settings.Accepted = append(e.settings.Accepted, finding.Acceptance{Objects: objects, Path: field, Reason: reason})
		return nil
	}
}

// AcceptFile leaves out the differences that are intended by a file. The file is a list, in YAML or JSON:
//
//	# accept.yaml
//	- objects: secrets/web      # a resource, or resource/name. Default: all objects
//	  path: data.password       # a field with what is below it. Default: the whole object
//	  faults: [crash]           # the kinds of faults, as for Only. Default: all runs
//	  reason: nobody reads it   # must not be empty
//
// An asterisk in objects or path stands for any text. The report prints the lines that accept a finding, and the
// entries not needed by a complete exploration.
func AcceptFile(path string) Option {
	return func(e *exploration) error {
		accepted, err := engine.ReadAcceptances(path)
		e.settings.Accepted = append(e.settings.Accepted, accepted...)
		return err
	}
}

// ReportTo writes the findings and the coverage to a file: as a page if its name ends in .html, else as
// JSON.
func ReportTo(path string) Option {
	return set(func(e *exploration) { e.reportFile = path })
}

// Replay repeats the runs of the findings in a JSON file of [ReportTo], in place of an exploration. A
// finding that a repetition shows fails the test.
func Replay(path string) Option {
	return set(func(e *exploration) { e.replayFile = path })
}
