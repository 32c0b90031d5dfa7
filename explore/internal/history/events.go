package history

import (
	"slices"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// events are the creations and deletions of the objects of a run, and the values of their fields.
type events struct {
	creations, deletions []event
	// values holds the values of each field that the operator has written.
	values map[fieldOfObject]map[types.UID]*valuesOfField
}

// event is the first version of an object, or the deletion.
type event struct {
	object faults.Object
	Version
	// isCascaded is true for a deletion if an owner of the object was deleted before, or was being deleted.
	isCascaded bool
}

// isExpected reports whether the deletion follows from something else: the deletion of an owner, or the end of the
// work of a Job.
func (d event) isExpected() bool { return d.isCascaded || isFinishedJob(d.Version) }

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

// eventsOf returns the events of a run.
func eventsOf(h History, o Options) events {
	w := wordsOf(h)
	e := events{values: make(map[fieldOfObject]map[types.UID]*valuesOfField)}
	isCreated := make(map[types.UID]bool)
	starts := deletionStarts(h)
	for _, v := range h.Versions {
		if proxy.IsBackground(v.Resource) || isMadeByController(v) {
			continue
		}
		object := w.objectOf(v)
		if v.IsDeleted {
			isCascaded := slices.ContainsFunc(v.Content().GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
				start := starts[owner.UID]
				return start != "" && ident.IsNewer(v.ResourceVersion, start)
			})
			e.deletions = append(e.deletions, event{object, v, isCascaded})
			continue
		}
		if !isCreated[v.UID] {
			isCreated[v.UID] = true
			e.creations = append(e.creations, event{object: object, Version: v})
		}
		e.addValues(object, v, fieldsOf(v, w, o.ownershipOf(v)), o.isUser(v.Manager))
	}
	return e
}

// deletionStarts returns the resource version at which the deletion of each object began: the version with a
// deletion timestamp, or else the deletion itself. The server counts the versions of all resources together, and the
// recorder receives the versions of different resources in any order.
func deletionStarts(h History) map[types.UID]string {
	starts := make(map[types.UID]string)
	for _, v := range h.Versions {
		if starts[v.UID] == "" && (v.IsDeleted || v.Content().GetDeletionTimestamp() != nil) {
			starts[v.UID] = v.ResourceVersion
		}
	}
	return starts
}

// addValues adds the new values of the operator's fields. A version that a user has written has no new value of the
// operator, even where managedFields do not show this: the operator owns what it wrote as stringData, whatever
// somebody else writes to data.
func (e *events) addValues(object faults.Object, v Version, fields fields, isOfUser bool) {
	for path, f := range fields {
		at := fieldOfObject{object, path}
		known := e.values[at][v.UID]
		switch {
		case known == nil && f.isOwned:
			if e.values[at] == nil {
				e.values[at] = make(map[types.UID]*valuesOfField)
			}
			e.values[at][v.UID] = &valuesOfField{written: []value{{text: f.value, step: v.Step, at: v.At}}}
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

// countDeletions returns how many objects of a name were deleted by the end of a step, by whether their deletion
// was expected.
func (e *events) countDeletions(object faults.Object, step int) (expected, unexpected int) {
	for _, each := range e.deletions {
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

// countCreations returns how many objects of a name were created, and how many objects of the name were deleted because
// of their owners before the last creation.
func (e *events) countCreations(object faults.Object) (creations, cascades int) {
	for _, each := range e.creations {
		if each.object == object {
			creations, cascades = creations+1, e.countCascadesBefore(each)
		}
	}
	return creations, cascades
}

// countCascadesBefore returns how many objects of a name were deleted because of their owners before a creation.
func (e *events) countCascadesBefore(creation event) (count int) {
	for _, each := range e.deletions {
		if each.isCascaded && each.object == creation.object &&
			ident.IsNewer(creation.ResourceVersion, each.ResourceVersion) {
			count++
		}
	}
	return count
}
