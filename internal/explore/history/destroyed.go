package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// DestructionKind is the kind of a destruction.
type DestructionKind string

// The kinds of destruction.
const (
	// Died is the end of an object that lives on in the reference runs.
	Died DestructionKind = "died"
	// CreatedAgain is an object that was created more often than in the reference runs.
	CreatedAgain DestructionKind = "created again"
	// Changed is another value of a field that each reference run chooses once, such as a generated
	// password.
	Changed DestructionKind = "changed"
)

// Destruction is something that a run has destroyed.
type Destruction struct {
	Kind DestructionKind
	// Object has a normalized name.
	Object faults.Object
	// Path is the path of the field that changed.
	Path string
	// Step and At are the step and the time of the version that shows the destruction.
	Step int
	At   time.Time
	// Text describes in a line what happened to the object.
	Text string
}

// String returns the destruction in a line.
func (d Destruction) String() string { return d.Object.String() + " " + d.Text }

// Destroyed returns the destructions in a run with faults that no reference run has. No object may
// die unless an object of its name has died in a reference run by the same step. No object may be created
// more often than in a reference run. A field that each reference run sets once, to a value of its own,
// must not change while the object exists.
//
// An object may die, and be created again, if its owner has died or is being deleted, and once for each
// fault that deletes the object, or that edits an object which the reference runs replace. Such a death stands for a death of the same kind in a reference run, and
// not for any other. A Job may vanish after it has finished. A field that somebody else has changed may
// change again. Objects that built-in controllers make and delete, such as Pods of ReplicaSets, take no
// part.
func Destroyed(references []History, got History, o Options, injected ...faults.Fault) []Destruction {
	j := judgement{run: livesOf(got, o), accepted: o.Accepted, killed: make(map[faults.Object]int)}
	for _, h := range references {
		j.references = append(j.references, livesOf(h, o))
	}
	for _, f := range injected {
		j.kinds = append(j.kinds, f.Kind)
		if f.Object == nil {
			continue
		}
		switch f.Kind {
		case faults.ForeignDelete, faults.ForeignRecreate:
			j.killed[*f.Object]++
		case faults.ForeignEdit:
			if j.isReplaced(*f.Object) {
				j.killed[*f.Object]++
			}
		}
	}
	all := slices.Concat(j.deaths(), j.births(), j.changes())
	slices.SortFunc(all, func(a, b Destruction) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.String(), b.String())) })
	return all
}

// judgement compares the lives of the objects of a run with those in the reference runs.
type judgement struct {
	run        lives
	references []lives
	accepted   *Accepted
	// kinds are the kinds of the faults of the run.
	kinds []faults.Kind
	// killed counts the faults that have deleted an object.
	killed map[faults.Object]int
}

// isReplaced reports whether a reference run has replaced an object by another object of its name. An operator that
// changes an object in this way also repairs the edit of somebody else in this way.
func (j *judgement) isReplaced(o faults.Object) bool {
	return slices.ContainsFunc(j.references, func(reference lives) bool {
		hasEnded := slices.ContainsFunc(reference.ended, func(l life) bool { return l.object == o && !l.isExpected() })
		count := 0
		for _, l := range reference.created {
			if l.object == o {
				count++
			}
		}
		return hasEnded && count > 1
	})
}

// lives are the lives of the objects of a run.
type lives struct {
	created []life
	ended   []life
	// values holds the values of each field that the operator has written.
	values map[fieldOfObject]map[types.UID]*valuesOfField
}

// life is the creation or the end of an object.
type life struct {
	object faults.Object
	Version
	// isOfOwner is true for the end of an object whose owner had ended, or was being deleted.
	isOfOwner bool
}

// isExpected reports whether the end of an object follows from something else: the end of its owner, or
// the end of the work of a Job.
func (l life) isExpected() bool { return l.isOfOwner || isFinishedJob(l.Version) }

type fieldOfObject struct {
	object faults.Object
	path   string
}

// valuesOfField are the values of a field of one object.
type valuesOfField struct {
	// written are the values that the operator has written, in the order of time.
	written []value
	// isDisturbed is true if somebody else has changed the field since the last value in written.
	isDisturbed bool
}

// value is a value of a field, and the version that brought it.
type value struct {
	text string
	step int
	at   time.Time
	// isRepair is true if somebody else had changed the field before.
	isRepair bool
}

// livesOf returns the lives of the objects of a run.
func livesOf(h History, o Options) lives {
	w := wordsOf(h)
	l := lives{values: make(map[fieldOfObject]map[types.UID]*valuesOfField)}
	alive := make(map[types.UID]bool)
	ending := endings(h)
	for _, v := range h.Versions {
		if isNoise(v.Resource) || isMadeByController(v) {
			continue
		}
		object := w.objectOf(v)
		if v.Deleted {
			isOfOwner := slices.ContainsFunc(v.content().GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
				began := ending[owner.UID]
				return began != "" && ident.IsNewer(v.ResourceVersion, began)
			})
			l.ended = append(l.ended, life{object, v, isOfOwner})
			continue
		}
		if !alive[v.UID] {
			alive[v.UID] = true
			l.created = append(l.created, life{object, v, false})
		}
		l.addValues(object, v, fieldsOf(v, w, o.claimsOf(v)), slices.Contains(o.Users, v.Manager))
	}
	return l
}

// endings returns the resource version at which the end of each object began: with its deletion, or
// with the wait for its finalizers. The server counts the versions of all resources together, and the
// recorder receives the versions of different resources in any order.
func endings(h History) map[types.UID]string {
	began := make(map[types.UID]string)
	for _, v := range h.Versions {
		if began[v.UID] == "" && (v.Deleted || v.content().GetDeletionTimestamp() != nil) {
			began[v.UID] = v.ResourceVersion
		}
	}
	return began
}

// addValues adds the new values of the operator's fields. A version that a user has written has no new value of
// the operator, even where managedFields do not show that: the operator owns what it wrote as stringData,
// whatever somebody else writes to data.
func (l *lives) addValues(object faults.Object, v Version, fields fields, isOfUser bool) {
	for path, f := range fields {
		at := fieldOfObject{object, path}
		known := l.values[at][v.UID]
		switch {
		case known == nil && f.isOwned:
			if l.values[at] == nil {
				l.values[at] = make(map[types.UID]*valuesOfField)
			}
			l.values[at][v.UID] = &valuesOfField{written: []value{{text: f.value, step: v.Step, at: v.At}}}
		case known == nil:
		case !f.isOwned || isOfUser:
			known.isDisturbed = known.isDisturbed || f.value != known.last().text
		default:
			if f.value != known.last().text {
				known.written = append(known.written, value{f.value, v.Step, v.At, known.isDisturbed})
			}
			known.isDisturbed = false
		}
	}
}

// last returns the value that the operator has written last.
func (v *valuesOfField) last() value { return v.written[len(v.written)-1] }

// countDeaths returns how often an object of this name died by the end of a step, and how many of these
// deaths were expected.
func (l lives) countDeaths(object faults.Object, step int) (expected, unexpected int) {
	for _, each := range l.ended {
		switch {
		case each.object != object || each.Step > step:
		case each.isExpected():
			expected++
		default:
			unexpected++
		}
	}
	return expected, unexpected
}

// countBirths returns how often an object of this name was created, and how often an object of this name has
// died with its owner.
func (l lives) countBirths(object faults.Object) (births, deathsOfOwner int) {
	for _, each := range l.created {
		if each.object == object {
			births++
		}
	}
	for _, each := range l.ended {
		if each.isOfOwner && each.object == object {
			deathsOfOwner++
		}
	}
	return births, deathsOfOwner
}

// deaths returns the deaths that the references do not have.
func (j judgement) deaths() []Destruction {
	var all []Destruction
	count := make(map[faults.Object]int)
	for _, each := range j.run.ended {
		if each.isExpected() {
			continue
		}
		// An expected death of a reference may come without its cause in the run, but only once.
		expected, _ := j.run.countDeaths(each.object, each.Step)
		allowed := 0
		for _, r := range j.references {
			expectedThere, unexpectedThere := r.countDeaths(each.object, each.Step)
			allowed = max(allowed, unexpectedThere+max(0, expectedThere-expected))
		}
		if count[each.object]++; count[each.object] <= allowed+j.killed[each.object] || j.accepted.accept(each.object, "", j.kinds...) {
			continue
		}
		all = append(all, Destruction{
			Kind: Died, Object: each.object, Step: each.Step, At: each.At,
			Text: fmt.Sprintf("died in step %d (uid %s): %d times by then, and at most %d times in the reference runs",
				each.Step+1, each.UID, count[each.object], allowed),
		})
	}
	return all
}

// births returns the creations that the references do not have. An object that is created once is
// judged by [Masks.Compare].
func (j judgement) births() []Destruction {
	var all []Destruction
	count := make(map[faults.Object]int)
	for _, each := range j.run.created {
		// An object may follow each object that has died with its owner, in the references too.
		_, deathsOfOwner := j.run.countBirths(each.object)
		allowed := 1 + deathsOfOwner
		for _, r := range j.references {
			birthsThere, deathsThere := r.countBirths(each.object)
			allowed = max(allowed, birthsThere+max(0, deathsOfOwner-deathsThere))
		}
		if count[each.object]++; count[each.object] <= allowed+j.killed[each.object] || j.accepted.accept(each.object, "", j.kinds...) {
			continue
		}
		all = append(all, Destruction{
			Kind: CreatedAgain, Object: each.object, Step: each.Step, At: each.At,
			Text: fmt.Sprintf("was created again in step %d (uid %s): %d times by then, and at most %d times in a reference run",
				each.Step+1, each.UID, count[each.object], allowed),
		})
	}
	return all
}

// changes returns the changes of fields that each reference chooses once.
func (j judgement) changes() []Destruction {
	var all []Destruction
	for at, objects := range j.run.values {
		for uid, values := range objects {
			for i, v := range values.written[1:] {
				if v.isRepair || !isChosenOnce(at, j.references) || j.accepted.accept(at.object, at.path, j.kinds...) {
					continue
				}
				all = append(all, Destruction{
					Kind: Changed, Object: at.object, Path: at.path, Step: v.step, At: v.at,
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
func isChosenOnce(at fieldOfObject, references []lives) bool {
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
