package configpublishing

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// plan is what a configuration should be.
type plan struct {
	owners  []metav1.OwnerReference
	entries []entry
	// differences are the differences from the current configuration, as a log shows them. Without differences there is
	// nothing to write.
	differences []string
}

// addDifference adds a difference to the log of p.
func (p *plan) addDifference(format string, arguments ...any) {
	p.differences = append(p.differences, fmt.Sprintf(format, arguments...))
}

// newPlan returns a plan with the owners of current, and without entries.
func newPlan(current *object) *plan {
	// Both lists are sent, and an empty list is not null.
	return &plan{owners: append([]metav1.OwnerReference{}, current.Metadata.OwnerReferences...), entries: []entry{}}
}

// planWithoutEntries returns the plan for the end of the Namespace: current has no entries.
func planWithoutEntries(current *object) *plan {
	p := newPlan(current)
	if n := len(current.Webhooks); n > 0 {
		p.addDifference("removed all entries (%d), because the Namespace of the program ends", n)
	}
	return p
}

// planWithoutEntriesFor returns the plan for the end of the Deployment: current has no entry that is for target.
func planWithoutEntriesFor(current *object, target configuration.Target) *plan {
	p := newPlan(current)
	for _, e := range current.Webhooks {
		if e.isFor(target) {
			p.addDifference("removed %s, because the Deployment of the program is gone", e.fields.Name)
			continue
		}
		p.entries = append(p.entries, e)
	}
	return p
}

// planWithBundles returns the plan of a replica that does not lead: each entry of current that is for target has the
// bundle that bundleFor returns.
func planWithBundles(current *object, target configuration.Target, bundleFor func([]byte) []byte) (*plan, error) {
	p := newPlan(current)
	for _, e := range current.Webhooks {
		if e.isFor(target) {
			if bundle := bundleFor(e.bundle()); len(bundle) > 0 && !bytes.Equal(bundle, e.bundle()) {
				changed, err := e.withBundle(bundle)
				if err != nil {
					return nil, err
				}
				e = changed
				p.addDifference("published the bundle in %s", e.fields.Name)
			}
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}

// planWithEntries returns the plan of the leader: current has the entries wanted, in their order, and no others. An
// entry that has no bundle yet is left as it is. Unless mayAdd, no entry is added.
func planWithEntries(
	current *object, wanted []*configuration.Entry, mayAdd bool, bundleFor func([]byte) []byte,
) (*plan, error) {
	p := newPlan(current)
	before := make(map[string]entry)
	for _, e := range current.Webhooks {
		before[e.fields.Name] = e
	}
	for _, w := range wanted {
		e, exists := before[w.Name]
		delete(before, w.Name)
		fields := e.withSettingsOfOthers(w)
		if fields.ClientConfig.CABundle = bundleFor(e.bundle()); len(fields.ClientConfig.CABundle) == 0 {
			fields.ClientConfig.CABundle = e.bundle()
		}
		var err error
		switch {
		case !exists && !mayAdd:
			continue
		case len(fields.ClientConfig.CABundle) == 0: // the bundle is not known yet
			if !exists {
				continue
			}
		case !exists:
			e, err = newEntry(&fields)
			p.addDifference("added %s", w.Name)
		case !e.hasFields(&fields):
			e, err = e.withFields(&fields)
			p.addDifference("corrected %s", w.Name)
		}
		if err != nil {
			return nil, err
		}
		p.entries = append(p.entries, e)
	}
	for _, e := range current.Webhooks {
		if _, isLeft := before[e.fields.Name]; isLeft {
			p.addDifference("removed %s", e.fields.Name)
		}
	}
	if len(p.differences) > 0 {
		return p, nil
	}
	for i, e := range p.entries { // nothing was added or removed, so both lists are as long
		if e.fields.Name != current.Webhooks[i].fields.Name {
			p.addDifference("changed the order of the entries")
			break
		}
	}
	return p, nil
}

// setOwner makes the Namespace an owner, by its present uid.
func (p *plan) setOwner(namespace *object) {
	wanted := metav1.OwnerReference{
		APIVersion: "v1", Kind: "Namespace", Name: namespace.Metadata.Name, UID: namespace.Metadata.UID,
	}
	kept, isSet := []metav1.OwnerReference{}, false
	for _, r := range p.owners {
		switch {
		case r.APIVersion != wanted.APIVersion || r.Kind != wanted.Kind || r.Name != wanted.Name:
			kept = append(kept, r)
		case r.UID == wanted.UID && !isTrue(r.Controller) && !isTrue(r.BlockOwnerDeletion):
			kept, isSet = append(kept, r), true
		}
	}
	if !isSet {
		kept = append(kept, wanted)
	}
	if !isSet || len(kept) != len(p.owners) {
		p.owners = kept
		p.addDifference("made the Namespace %s the owner", wanted.Name)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
