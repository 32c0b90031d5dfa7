package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// echoes records the latest writes of a controller's reconciles. It distinguishes a reconcile's
// own changes from the changes of others when they come back as triggers of the same key. A
// change is an echo only for the key whose reconcile wrote it: another key may wait for just
// that change.
//
// A stream may show a change before the answer of the write has arrived. Therefore a trigger of
// the writing key is held while the write is under way, until the answer shows whether the
// trigger is an echo.
type echoes struct {
	mu sync.Mutex
	// made holds the versions that writes were answered with. A version that a write did not
	// make is not in it, as far as that can be known: see outcomeOf.
	made map[objectVersion]madeBy
	// ring holds the keys of made, the oldest at next.
	ring [maxMade]objectVersion
	next int
	// inFlight holds the writes that have not been answered.
	inFlight map[flight]*heldTriggers
	// uncertain holds, for each key, the writes of unknown outcome since the last reconcile that
	// succeeded, the oldest first.
	uncertain map[queue.Key][]uncertainWrite
}

// uncertainWrite is a write of unknown outcome. The first change of its target that is shown
// after it may be its own. A later change of the target is not its own. The target of a write to a
// collection has no name. Each change in the collection may be due to that write.
type uncertainWrite struct {
	target
	ended time.Time
	// isDelete is true if the write deletes, and isOfStatus if it goes to the status subresource.
	isDelete, isOfStatus bool
}

// canExplain reports whether the write may have led to a change of its target. Only a deletion can
// begin the end of an object, and a write of a status changes nothing else.
func (w uncertainWrite) canExplain(v changedVersion) bool {
	switch {
	case w.isDelete:
		return v.endsLife
	case w.isOfStatus:
		return !v.endsLife && !v.changesSpec
	}
	return !v.endsLife || v.resourceVersion == "" // the removal of the last finalizer ends an object
}

const (
	// maxMade is how many writes are remembered. Streams show a write within moments.
	maxMade = 256
	// maxUncertain limits what is remembered of one key.
	maxUncertain = 16
	// maxUncertainAge is how long a write of unknown outcome may still be shown.
	maxUncertainAge = 2 * time.Minute
)

// objectVersion is one version of one object. An empty resourceVersion stands for the deletion.
type objectVersion struct {
	uid             types.UID
	resourceVersion string
}

// changedVersion is a version that a stream has shown.
type changedVersion struct {
	objectVersion
	// endsLife is true if the object is gone, or its deletion begins with the version.
	endsLife bool
	// changesSpec is true if the object has another generation than before.
	changesSpec bool
}

// isDeletion reports whether the object is gone.
func (v changedVersion) isDeletion() bool { return v.uid != "" && v.resourceVersion == "" }

// madeBy is the key whose reconcile made a version, and how certain that is.
type madeBy struct {
	key  queue.Key
	echo queue.Echo
}

// target names what a write is about, in all versions of its resource.
type target struct {
	cluster, group, plural, namespace, name string
}

func targetOf(r kube.Resource, k kube.Key) target {
	return target{k.Cluster, r.Group, r.Plural, k.Namespace, k.Name}
}

// contains reports whether other is t, or part of the collection t.
func (t target) contains(other target) bool {
	if t.name == "" {
		other.name = ""
		if t.namespace == "" {
			other.namespace = ""
		}
	}
	return t == other
}

// flight identifies the writes of a key's reconcile to one object.
type flight struct {
	key    queue.Key
	target target
}

// heldTriggers holds the triggers that may be echoes of writes that are under way.
type heldTriggers struct {
	writes   int
	triggers []heldTrigger
}

type heldTrigger struct {
	trigger queue.Trigger
	version changedVersion
}

func newEchoes() *echoes {
	return &echoes{
		made: make(map[objectVersion]madeBy, maxMade), inFlight: make(map[flight]*heldTriggers),
		uncertain: make(map[queue.Key][]uncertainWrite),
	}
}

// handler returns a handler that records the writes of a reconcile of key. It belongs directly
// above the handler that sends them, so that skipped applies are not recorded. shown returns the newest
// version of an object that the controller's streams have shown. add adds a trigger that was
// held to the queue.
func (e *echoes) handler(next kube.Handler, key queue.Key, shown func(target) objectVersion, add func(queue.Trigger)) kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		if !r.Verb.IsWrite() {
			return next.Do(ctx, r)
		}
		f := flight{key, targetOf(r.Resource, kube.Key{Cluster: r.Cluster, Namespace: r.Namespace, Name: r.ObjectName()})}
		before := shown(f.target)
		e.beginWrite(f)
		var outcome writeOutcome
		defer func() {
			for _, t := range e.endWrite(f, r, outcome) {
				add(t)
			}
		}()
		response, err := next.Do(ctx, r)
		outcome = outcomeOf(r, response, err, before)
		return response, err
	})
}

// writeOutcome is what a write did.
type writeOutcome struct {
	// version is the version that the write made. It is empty if the write made none, or if
	// that is not known.
	version objectVersion
	// echo is how certain it is that the write made the version.
	echo queue.Echo
	// isUncertain is true if it is not known what the write did.
	isUncertain bool
}

// uncertainWriteOf returns the write r to t as a write of unknown outcome that has just ended.
func uncertainWriteOf(t target, r *kube.Request) uncertainWrite {
	return uncertainWrite{
		target: t, ended: time.Now(), isOfStatus: r.Subresource == "status",
		isDelete: r.Verb == kube.VerbDelete || r.Verb == kube.VerbDeleteCollection,
	}
}

// outcomeOf returns what a write did, by its answer. before is the newest version of the object
// that a stream had shown when the write began.
//
// The answer to a write that changes nothing has the version from before, which somebody else
// made. It is known that a write made its version only if the write created or deleted the
// object, or named the version that it replaced.
func outcomeOf(r *kube.Request, response *kube.Response, err error, before objectVersion) writeOutcome {
	switch {
	case err != nil:
		e, ok := kube.AsError(err)
		return writeOutcome{isUncertain: !ok || e.Unknown}
	case r.Verb == kube.VerbDeleteCollection:
		return writeOutcome{isUncertain: true}
	}
	var answer struct {
		Kind     string `json:"kind"`
		Metadata struct {
			UID               types.UID `json:"uid"`
			ResourceVersion   string    `json:"resourceVersion"`
			DeletionTimestamp *string   `json:"deletionTimestamp"`
		} `json:"metadata"`
		Details struct {
			UID types.UID `json:"uid"`
		} `json:"details"`
	}
	if kube.Unmarshal(response.Body, &answer) != nil {
		return writeOutcome{isUncertain: true}
	}
	uid, version := answer.Metadata.UID, answer.Metadata.ResourceVersion
	replaced := r.Preconditions.ResourceVersion
	switch {
	case answer.Kind == "Status" && answer.Details.UID != "":
		return writeOutcome{version: objectVersion{uid: answer.Details.UID}, echo: queue.IsEcho}
	case r.Verb == kube.VerbDelete && answer.Metadata.DeletionTimestamp == nil:
		return writeOutcome{version: objectVersion{uid: uid}, echo: queue.IsEcho}
	case uid == "" || version == "":
		return writeOutcome{isUncertain: true} // of a subresource, or nothing that can be read
	case uid == before.uid && !ident.IsNewer(version, before.resourceVersion), version == replaced:
		return writeOutcome{} // nothing has changed
	case r.Verb == kube.VerbCreate, r.Verb == kube.VerbDelete, replaced != "":
		return writeOutcome{version: objectVersion{uid, version}, echo: queue.IsEcho}
	default:
		return writeOutcome{version: objectVersion{uid, version}, echo: queue.MaybeEcho}
	}
}

// beginWrite records that a write is under way.
func (e *echoes) beginWrite(f flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := e.inFlight[f]
	if held == nil {
		held = &heldTriggers{}
		e.inFlight[f] = held
	}
	held.writes++
}

// endWrite records the outcome of a write. It returns the triggers that were held because of
// the write, and are held no more.
func (e *echoes) endWrite(f flight, r *kube.Request, o writeOutcome) []queue.Trigger {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.isUncertain {
		e.recordUncertainLocked(f.key, uncertainWriteOf(f.target, r))
	}
	e.recordMadeLocked(o.version, madeBy{f.key, o.echo})
	held := e.inFlight[f]
	if held.writes--; held.writes > 0 {
		return nil
	}
	delete(e.inFlight, f)
	triggers := make([]queue.Trigger, 0, len(held.triggers))
	for _, h := range held.triggers {
		h.trigger.Echo = e.classifyLocked(f, h.version)
		triggers = append(triggers, h.trigger)
	}
	return triggers
}

// recordMadeLocked records who made a version, unless that is known already.
func (e *echoes) recordMadeLocked(v objectVersion, by madeBy) {
	if _, isKnown := e.made[v]; v.uid == "" || isKnown {
		return
	}
	delete(e.made, e.ring[e.next])
	e.made[v] = by
	e.ring[e.next] = v
	e.next = (e.next + 1) % maxMade
}

func (e *echoes) recordUncertainLocked(k queue.Key, w uncertainWrite) {
	writes := e.uncertain[k]
	if len(writes) == maxUncertain {
		writes = writes[1:]
	}
	e.uncertain[k] = append(writes, w)
}

// classifyLocked decides whether a change of f's target to a version is an echo for f's key. If a
// write of unknown outcome may have made the version, that write explains no other version from
// now on.
func (e *echoes) classifyLocked(f flight, v changedVersion) queue.Echo {
	if by, isKnown := e.made[v.objectVersion]; isKnown {
		if by.key == f.key {
			return by.echo
		}
		return queue.NotEcho
	}
	writes := e.uncertain[f.key]
	for i, w := range writes {
		if !w.contains(f.target) || time.Since(w.ended) > maxUncertainAge || !w.canExplain(v) {
			continue
		}
		if w.name != "" {
			e.uncertain[f.key] = slices.Delete(writes, i, i+1)
			e.recordMadeLocked(v.objectVersion, madeBy{f.key, queue.MaybeEcho})
		}
		return queue.MaybeEcho
	}
	return queue.NotEcho
}

// forget drops all versions that writes have made. A change that was written before is then no
// echo.
func (e *echoes) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.made)
	clear(e.ring[:])
	e.next = 0
}

// classify sets the Echo of triggers, which a change of an object to a version has led to. It
// returns the triggers that can be added to the queue, and holds the others.
func (e *echoes) classify(t target, v changedVersion, triggers []queue.Trigger) []queue.Trigger {
	e.mu.Lock()
	defer e.mu.Unlock()
	rest := triggers[:0]
	for _, trigger := range triggers {
		f := flight{trigger.Key, t}
		trigger.Echo = e.classifyLocked(f, v)
		if held := e.inFlight[f]; held != nil && trigger.Echo == queue.NotEcho {
			held.triggers = append(held.triggers, heldTrigger{trigger, v})
			continue
		}
		rest = append(rest, trigger)
	}
	return rest
}

// forgetUncertain forgets the writes of unknown outcome of a key, because a reconcile has
// succeeded since.
func (e *echoes) forgetUncertain(k queue.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.uncertain, k)
}

// shownVersion returns the newest version of an object that the controller's streams have
// shown.
func (e *engine) shownVersion(t target) (newest objectVersion) {
	if t.name == "" {
		return objectVersion{}
	}
	for _, sub := range e.subs {
		if r := sub.stream.Resource; r.Group != t.group || r.Plural != t.plural || sub.stream.Cluster != t.cluster {
			continue
		}
		o, isShown := sub.open.Store().Get(kube.Key{Namespace: t.namespace, Name: t.name})
		if isShown && (newest.uid == "" || ident.IsNewer(o.ResourceVersion, newest.resourceVersion)) {
			newest = objectVersion{o.UID, o.ResourceVersion}
		}
	}
	return newest
}
