package engine

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// maxChangedKeys is how many keys of a ConfigMap or Secret change their values. The seed chooses them.
const maxChangedKeys = 3

// objectChangePlanner plans the runs of [faults.ObjectChange]: the user changes the content of each object of the
// samples, deletes the object, and makes the object again.
type objectChangePlanner struct {
	settings Settings
	cluster  *cluster
	results  *results
	random   *rand.Rand
}

// plan returns one run for each object, and one in which the objects that the samples refer to come late.
func (p *objectChangePlanner) plan() (jobs []job, err error) {
	var samples []*unstructured.Unstructured
	for _, raw := range p.settings.Steps[0].Apply {
		sample, err := p.cluster.decode(raw, "")
		if err != nil {
			return nil, err
		}
		samples = append(samples, withData(sample))
	}
	for _, sample := range samples {
		j, err := p.changeJob(samples, sample)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if len(samples) < 2 {
		return jobs, nil
	}
	late, err := p.lateReferredObjects(samples)
	return append(jobs, late), err
}

// changeJob returns the job in whose run the user changes one object of the samples.
func (p *objectChangePlanner) changeJob(
	samples []*unstructured.Unstructured, changed *unstructured.Unstructured,
) (job, error) {
	object, err := p.cluster.objectOf(marshalObject(changed))
	if err != nil {
		return job{}, err
	}
	original := marshalObject(changed)
	steps := []finding.Step{{Name: p.settings.Steps[0].Name, Apply: marshalObjects(samples)}}
	var transitionSteps []int
	changes := p.changesOf(changed)
	for _, c := range changes {
		transitionSteps = append(transitionSteps, len(steps))
		steps = append(steps,
			finding.Step{Name: object.String() + " " + c.name, Apply: []json.RawMessage{marshalObject(c.object)}},
			finding.Step{Name: object.String() + ": as in the sample", Apply: []json.RawMessage{original}})
	}
	deleted := finding.Step{Name: "delete " + object.String(), Delete: []faults.Object{object}}
	if second := secondOf(p.settings.SecondSamples, changed); second != nil && !hasCustomGroup(changed) {
		steps = append(steps, deleted,
			finding.Step{Name: object.String() + " of the second sample", Apply: []json.RawMessage{marshalObject(second)}})
	}
	steps = append(steps, deleted,
		finding.Step{Name: "make " + object.String() + " again", Apply: []json.RawMessage{original}})
	return job{
		schedule: finding.Schedule{Seed: p.settings.Seed, Steps: steps}, kind: faults.ObjectChange, changed: object.String(),
		transitionSteps: transitionSteps,
	}, nil
}

// lateReferredObjects returns the run in which the user applies custom objects first, and then all other objects one
// after the other. If all objects are custom, their order is the reverse of the file's order.
func (p *objectChangePlanner) lateReferredObjects(samples []*unstructured.Unstructured) (job, error) {
	isReferred := func(o *unstructured.Unstructured) bool { return !hasCustomGroup(o) }
	order := slices.Clone(samples)
	if slices.ContainsFunc(samples, isReferred) {
		slices.SortStableFunc(order, func(a, b *unstructured.Unstructured) int { return rankOf(a) - rankOf(b) })
	} else {
		slices.Reverse(order)
	}
	var steps []finding.Step
	for i, sample := range order {
		raw := marshalObject(sample)
		object, err := p.cluster.objectOf(raw)
		if err != nil {
			return job{}, err
		}
		if i > 0 && hasCustomGroup(sample) && rankOf(sample) == rankOf(order[i-1]) &&
			slices.ContainsFunc(samples, isReferred) {
			steps[len(steps)-1].Apply = append(steps[len(steps)-1].Apply, raw) // all objects that refer to others come at once
			continue
		}
		steps = append(steps,
			finding.Step{Name: "apply " + object.String(), Apply: []json.RawMessage{raw}, IsUncompared: i < len(order)-1})
	}
	steps[len(steps)-1].IsUncompared = false
	return job{
		schedule: finding.Schedule{Seed: p.settings.Seed, Steps: steps}, kind: faults.ObjectChange,
		changed: "referred objects that come late",
	}, nil
}

// rankOf returns 0 for a custom object, which may refer to others, and 1 for any other object.
func rankOf(o *unstructured.Unstructured) int {
	if hasCustomGroup(o) {
		return 0
	}
	return 1
}

// hasCustomGroup reports whether an object is of a custom kind: the group of a built-in kind has no dot, or ends in
// .k8s.io.
func hasCustomGroup(o *unstructured.Unstructured) bool {
	group := o.GroupVersionKind().Group
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// objectChange is an object with another content.
type objectChange struct {
	// name describes the content, such as: data.mode has another value.
	name   string
	object *unstructured.Unstructured
}

// changesOf returns other contents of a ConfigMap or Secret: some keys have other values, a key is missing, and a key
// is added. Other kinds have none, and neither have immutable objects and Secrets of types that require keys.
func (p *objectChangePlanner) changesOf(o *unstructured.Unstructured) (changes []objectChange) {
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	keys := slices.Sorted(maps.Keys(data))
	isContent := o.GetAPIVersion() == "v1" && (o.GetKind() == "ConfigMap" || o.GetKind() == "Secret")
	if !isContent {
		return nil
	}
	if reason := reasonToKeep(o); reason != "" {
		p.results.update(func(c *finding.Coverage) {
			for _, key := range keys {
				c.Fields.Total++
				c.FieldsWithoutValues[o.GetKind()+" "+o.GetName()+" data."+key] = reason
			}
		})
		return nil
	}
	p.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	changing := keys[:min(len(keys), maxChangedKeys)]
	p.results.update(func(c *finding.Coverage) {
		c.Fields.Total, c.Fields.Done = c.Fields.Total+len(keys), c.Fields.Done+len(changing)
		c.Transitions.Total += len(changing) + min(len(keys), 1) + 1
	})
	for _, key := range changing {
		changes = append(changes, objectChange{
			"data." + key + " has another value", withKey(o, key, func(text string) string { return values.OtherText(text) }),
		})
	}
	if len(keys) > 0 {
		fewer := o.DeepCopy()
		unstructured.RemoveNestedField(fewer.Object, "data", keys[0])
		changes = append(changes, objectChange{"data." + keys[0] + " is missing", fewer})
	}
	return append(changes,
		objectChange{"data.explored is added", withKey(o, "explored", func(string) string { return "explored" })})
}

// reasonToKeep returns why an exploration keeps the content of a ConfigMap or Secret, or an empty text.
func reasonToKeep(o *unstructured.Unstructured) string {
	if isImmutable, _, _ := unstructured.NestedBool(o.Object, "immutable"); isImmutable {
		return "the object is immutable: needs a second sample"
	}
	if secretType, _, _ := unstructured.NestedString(o.Object, "type"); secretType != "" && secretType != "Opaque" {
		return "a Secret of the type " + secretType + " requires keys: needs a second sample"
	}
	return ""
}

// withKey returns a copy of a ConfigMap or Secret whose key has another value.
func withKey(o *unstructured.Unstructured, key string, change func(text string) string) *unstructured.Unstructured {
	changed := o.DeepCopy()
	text, _, _ := unstructured.NestedString(changed.Object, "data", key)
	if o.GetKind() == "Secret" {
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return changed // the server will refuse the sample
		}
		text = base64.StdEncoding.EncodeToString([]byte(change(string(content))))
	} else {
		text = change(text)
	}
	data, _, _ := unstructured.NestedMap(changed.Object, "data")
	if data == nil {
		data = make(map[string]any)
	}
	data[key] = text
	changed.Object["data"] = data
	return changed
}

// withData returns a copy of a Secret in which stringData is part of data. Other objects are returned as they are. The
// server does not remove a key that a user has applied as stringData and then leaves out.
func withData(o *unstructured.Unstructured) *unstructured.Unstructured {
	texts, _, _ := unstructured.NestedStringMap(o.Object, "stringData")
	if o.GetKind() != "Secret" || len(texts) == 0 {
		return o
	}
	changed := o.DeepCopy()
	delete(changed.Object, "stringData")
	for key, text := range texts {
		changed = withKey(changed, key, func(string) string { return text })
	}
	return changed
}

// secondOf returns the object of second samples that stands for a sample, under the name of the sample, or nil: the
// object of the same kind and name, or the only object of the kind.
func secondOf(seconds []json.RawMessage, sample *unstructured.Unstructured) *unstructured.Unstructured {
	var ofKind []*unstructured.Unstructured
	for _, raw := range seconds {
		second := &unstructured.Unstructured{}
		if second.UnmarshalJSON(raw) != nil || second.GroupVersionKind() != sample.GroupVersionKind() {
			continue
		}
		if second.GetName() == sample.GetName() {
			return withData(second)
		}
		ofKind = append(ofKind, second)
	}
	if len(ofKind) != 1 {
		return nil
	}
	ofKind[0].SetName(sample.GetName())
	return withData(ofKind[0])
}

// marshalObject returns an object as a user applies it. An object that came as JSON can be written as JSON.
func marshalObject(o *unstructured.Unstructured) json.RawMessage {
	data, err := json.Marshal(o.Object)
	if err != nil {
		panic(err)
	}
	return data
}

// marshalObjects returns objects as a user applies them.
func marshalObjects(objects []*unstructured.Unstructured) (all []json.RawMessage) {
	for _, o := range objects {
		all = append(all, marshalObject(o))
	}
	return all
}
