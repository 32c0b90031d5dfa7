package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/ident"
)

// DestructionKind is what happened to an object.
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
	Object schedule.Object
	// Path is the path of the field that changed.
	Path string
	// Step and At are those of the version that shows it.
	Step int
	At   time.Time
	// Text says what happened, in a line.
	Text string
}

// String returns what happened, in a line.
func (d Destruction) String() string { return d.Text }

// Destroyed returns what a run has destroyed that no reference run destroys. No object may die unless
// an object of its name has died in a reference run by the same step. No object may be created more
// often than in a reference run. A field that each reference run sets to one value, but each to its
// own, must not change while the object lives.
//
// An object may die, and be created again, if its owner has died or is being deleted. So may each of
// killed, the objects that faults have deleted or changed, once for each time that it is among them. A field
// of such an object may change once for each time too, because a fault may have changed the object. Objects that
// built-in controllers make and delete, such as Pods of ReplicaSets, take no part. A Job may vanish
// after it has finished.
func Destroyed(references []History, got History, o Options, killed ...schedule.Object) []Destruction {
	lives := make([]lives, len(references))
	for i, h := range references {
		lives[i] = livesOf(h, o)
	}
	found := livesOf(got, o)
	all := found.deaths(lives, o, killed)
	all = append(all, found.births(lives, o, killed)...)
	all = append(all, found.changes(lives, o, killed)...)
	slices.SortFunc(all, func(a, b Destruction) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Text, b.Text)) })
	return all
}

// lives are the lives of the objects of a run.
type lives struct {
	created []life
	ended   []life
	// values holds the values of each field that the operator has written, in the order of time.
	values map[fieldOfObject]map[types.UID][]value
}

// life is the begin or the end of an object.
type life struct {
	object schedule.Object
	Version
	// isOfOwner is true for the end of an object whose owner had ended, or was being deleted.
	isOfOwner bool
}

type fieldOfObject struct {
	object schedule.Object
	path   string
}

// value is a value of a field, and the version that brought it.
type value struct {
	text string
	step int
	at   time.Time
}

// livesOf returns the lives of the objects of a run.
func livesOf(h History, o Options) lives {
	w := wordsOf(h)
	l := lives{values: make(map[fieldOfObject]map[types.UID][]value)}
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
		l.addValues(object, v, fieldsOf(v, w, o.claimsOf(v)))
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

// addValues adds the values of the operator's fields that are new.
func (l *lives) addValues(object schedule.Object, v Version, fields fields) {
	for path, f := range fields {
		if !f.isOwned {
			continue
		}
		at := fieldOfObject{object, path}
		if l.values[at] == nil {
			l.values[at] = make(map[types.UID][]value)
		}
		if all := l.values[at][v.UID]; len(all) == 0 || all[len(all)-1].text != f.value {
			l.values[at][v.UID] = append(all, value{f.value, v.Step, v.At})
		}
	}
}

// countDeaths returns how often an object of this name died by the end of a step.
func (l lives) countDeaths(object schedule.Object, step int) int {
	n := 0
	for _, each := range l.ended {
		if each.object == object && each.Step <= step {
			n++
		}
	}
	return n
}

// countBirths returns how often an object of this name was created.
func (l lives) countBirths(object schedule.Object) int {
	n := 0
	for _, each := range l.created {
		if each.object == object {
			n++
		}
	}
	return n
}

// deaths returns the deaths that the references do not have.
func (l lives) deaths(references []lives, o Options, killed []schedule.Object) []Destruction {
	var all []Destruction
	count := make(map[schedule.Object]int)
	for _, each := range l.ended {
		if each.isOfOwner || isFinishedJob(each.Version) || o.isIgnored(each.object, "") {
			continue
		}
		allowed := countOf(killed, each.object)
		expected := 0
		for _, r := range references {
			expected = max(expected, r.countDeaths(each.object, each.Step))
		}
		if count[each.object]++; count[each.object] > allowed+expected {
			all = append(all, Destruction{
				Kind: Died, Object: each.object, Step: each.Step, At: each.At,
				Text: fmt.Sprintf("%s died in step %d (uid %s): %d times by then, and at most %d times in the reference runs",
					each.object, each.Step+1, each.UID, count[each.object], expected),
			})
		}
	}
	return all
}

// births returns the creations that the references do not have. An object that is created once is
// judged by [Masks.Compare].
func (l lives) births(references []lives, o Options, killed []schedule.Object) []Destruction {
	var all []Destruction
	count := make(map[schedule.Object]int)
	for _, each := range l.created {
		if o.isIgnored(each.object, "") {
			continue
		}
		allowed := countOf(killed, each.object)
		for _, end := range l.ended {
			if end.isOfOwner && end.object == each.object {
				allowed++
			}
		}
		expected := 1
		for _, r := range references {
			expected = max(expected, r.countBirths(each.object))
		}
		if count[each.object]++; count[each.object] > allowed+expected {
			all = append(all, Destruction{
				Kind: CreatedAgain, Object: each.object, Step: each.Step, At: each.At,
				Text: fmt.Sprintf("%s was created again in step %d (uid %s): %d times by then, and at most %d times in a reference run",
					each.object, each.Step+1, each.UID, count[each.object], expected),
			})
		}
	}
	return all
}

// changes returns the changes of fields that each reference chooses once.
func (l lives) changes(references []lives, o Options, killed []schedule.Object) []Destruction {
	var all []Destruction
	for at, objects := range l.values {
		if o.isIgnored(at.object, at.path) || !isChosenOnce(at, references) {
			continue
		}
		for uid, values := range objects {
			for i, v := range values[1:] {
				if i < countOf(killed, at.object) {
					continue
				}
				all = append(all, Destruction{
					Kind: Changed, Object: at.object, Path: at.path, Step: v.step, At: v.at,
					Text: fmt.Sprintf("%s: %s changed in step %d from %s to %s (uid %s): each reference run chooses it once",
						at.object, at.path, v.step+1, values[i].text, v.text, uid),
				})
			}
		}
	}
	return all
}

// isChosenOnce reports whether each reference sets a field to one value for each object, and not all
// of them to the same.
func isChosenOnce(at fieldOfObject, references []lives) bool {
	distinct := make(map[string]bool)
	for _, r := range references {
		objects := r.values[at]
		if len(objects) == 0 {
			return false
		}
		for _, values := range objects {
			if len(values) != 1 {
				return false
			}
			distinct[values[0].text] = true
		}
	}
	return len(distinct) > 1
}

// countOf returns how often an object is among objects.
func countOf(objects []schedule.Object, object schedule.Object) int {
	n := 0
	for _, each := range objects {
		if each == object {
			n++
		}
	}
	return n
}
