package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// Destruction is a deletion, a creation or a change of a field that no reference run has.
type Destruction struct {
	// Object has a normalized name.
	Object faults.Object
	// Path is the path of the field that changed. It is empty for deletions and creations.
	Path string
	// Step and At are the step and the time of the version that shows the destruction.
	Step int
	At   time.Time
	// Text describes in a line what happened to the object.
	Text string
}

// String returns the destruction in a line.
func (d Destruction) String() string { return d.Object.String() + " " + d.Text }

// Destroyed returns the destructions in a run with faults that no reference run has:
//
//   - An object was deleted, and no object of its name was deleted in a reference run by the same step.
//   - An object was created more often than in each reference run.
//   - A field has changed that each reference run sets once, to another value in each, such as a generated
//     password.
//
// For example, two references create secrets/web once, with the passwords "a1" and "b2". A run in which the Secret
// is deleted in step 2 and created again has two destructions. A run in which the password changes from "c3" to
// "d4" has one.
//
// These deletions, and the creations that follow them, are expected:
//
//   - the deletion of an object whose owner was deleted, or is being deleted
//   - one deletion for each fault that deletes or evicts the object
//   - one deletion for each fault that edits the object, if a reference run replaces objects of this name
//   - the deletion of a Job that has finished
//
// An expected deletion stands for one of a reference run that has the same cause. A field that somebody else has
// changed may change again. Objects that built-in controllers make and delete, such as the Pods of ReplicaSets, take
// no part.
func Destroyed(references []History, got History, o Options, injected ...faults.Fault) []Destruction {
	c := destructionCheck{run: eventsOf(got, o), accepted: o.Accepted, deletedByFaults: make(map[faults.Object]int)}
	for _, h := range references {
		c.references = append(c.references, eventsOf(h, o))
	}
	for _, f := range injected {
		c.kinds = append(c.kinds, f.Kind)
		if f.Object == nil {
			continue
		}
		switch f.Kind {
		case faults.ForeignDelete, faults.ForeignRecreate, faults.PodEvicted:
			c.deletedByFaults[*f.Object]++
		case faults.ForeignEdit:
			if c.isReplaced(*f.Object) {
				c.deletedByFaults[*f.Object]++
			}
		}
	}
	all := slices.Concat(c.deletions(), c.creations(), c.changes())
	slices.SortFunc(all,
		func(a, b Destruction) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.String(), b.String())) })
	return all
}

// destructionCheck compares the events of a run with the events of the reference runs.
type destructionCheck struct {
	run        events
	references []events
	accepted   *Accepted
	// kinds are the kinds of the faults of the run.
	kinds []faults.Kind
	// deletedByFaults counts the faults that have deleted an object.
	deletedByFaults map[faults.Object]int
}

// isReplaced reports whether a reference run has replaced an object by another object of its name. An operator that
// changes an object in this way also repairs the edit of somebody else in this way.
func (c *destructionCheck) isReplaced(o faults.Object) bool {
	return slices.ContainsFunc(c.references, func(reference events) bool {
		isDeleted := slices.ContainsFunc(reference.deletions, func(d event) bool { return d.object == o && !d.isExpected() })
		creations, _ := reference.countCreations(o)
		return isDeleted && creations > 1
	})
}

// deletions returns the deletions that the references do not have.
func (c *destructionCheck) deletions() []Destruction {
	unexpected := slices.DeleteFunc(slices.Clone(c.run.deletions), event.isExpected)
	return c.tooOften(unexpected, "deleted", func(each event) (allowed int) {
		// An expected deletion of a reference may come without its cause in the run, but only once.
		expected, _ := c.run.countDeletions(each.object, each.Step)
		for _, r := range c.references {
			expectedThere, unexpectedThere := r.countDeletions(each.object, each.Step)
			allowed = max(allowed, unexpectedThere+max(0, expectedThere-expected))
		}
		return allowed
	})
}

// creations returns the creations that the references do not have. An object that is created once is
// judged by [Masks.Compare].
func (c *destructionCheck) creations() []Destruction {
	return c.tooOften(c.run.creations, "created again", func(each event) int {
		// An object may be created after each object that was deleted because of its owner, in the references too.
		cascaded := c.run.countCascadesBefore(each)
		allowed := 1 + cascaded
		for _, r := range c.references {
			creationsThere, cascadedThere := r.countCreations(each.object)
			allowed = max(allowed, creationsThere+max(0, cascaded-cascadedThere))
		}
		return allowed
	})
}

// tooOften returns a destruction for each event of an object beyond the number that the references and the faults
// allow.
func (c *destructionCheck) tooOften(events []event, what string, allowedFor func(event) int) (all []Destruction) {
	count := make(map[faults.Object]int)
	for _, each := range events {
		allowed := allowedFor(each)
		if count[each.object]++; count[each.object] <= allowed+c.deletedByFaults[each.object] ||
			c.accepted.acceptDifference(each.object, "", c.kinds...) {
			continue
		}
		all = append(all, Destruction{
			Object: each.object, Step: each.Step, At: each.At,
			Text: fmt.Sprintf("was %s in step %d (uid %s): %d times by then, and at most %d times in a reference run",
				what, each.Step+1, each.UID, count[each.object], allowed),
		})
	}
	return all
}

// changes returns the changes of fields that each reference chooses once.
func (c *destructionCheck) changes() []Destruction {
	var all []Destruction
	for at, objects := range c.run.values {
		for uid, values := range objects {
			for i, v := range values.written[1:] {
				if v.isRepair || !isChosenOnce(at, c.references) || c.accepted.acceptDifference(at.object, at.path, c.kinds...) {
					continue
				}
				all = append(all, Destruction{
					Object: at.object, Path: at.path, Step: v.step, At: v.at,
					Text: fmt.Sprintf("%s changed in step %d from %s to %s (uid %s): each reference run chooses it once",
						at.path, v.step+1, values.written[i].text, v.text, uid),
				})
			}
		}
	}
	return all
}

// isChosenOnce reports whether each reference sets a field once for each object of a name, and not all references
// set the same values.
func isChosenOnce(at fieldOfObject, references []events) bool {
	distinct := make(map[string]bool)
	for _, r := range references {
		objects := r.values[at]
		if len(objects) == 0 {
			return false
		}
		var chosen []string
		for _, values := range objects {
			if len(values.written) != 1 {
				return false
			}
			chosen = append(chosen, values.written[0].text)
		}
		slices.Sort(chosen)
		distinct[strings.Join(chosen, "\n")] = true
	}
	return len(distinct) > 1
}
