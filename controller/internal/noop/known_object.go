package noop

import (
	"crypto/sha256"
	"errors"
	"maps"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

var (
	errNoObject   = errors.New("the JSON is not an object with metadata")
	errNoIdentity = errors.New("the object has no uid or no resourceVersion")
)

// knownObject is an object in the state that the server certainly has: the cache shows it, or an apply was answered
// with it.
type knownObject struct {
	uid     types.UID
	version string
	object  []byte
	// isMetadataOnly is true if object is a PartialObjectMetadata.
	isMetadataOnly bool
	// fields is the decoded object, and metadata a part of it. Both are nil until decode.
	fields, metadata map[string]any
}

func (o *knownObject) decode() error {
	if o.fields != nil {
		return nil
	}
	// utiljson follows the same rules as kube.Unmarshal, with fewer allocations.
	if err := utiljson.Unmarshal(o.object, &o.fields); err != nil {
		return err
	}
	var ok bool
	if o.metadata, ok = o.fields["metadata"].(map[string]any); !ok {
		return errNoObject
	}
	return nil
}

// readIdentity sets uid and version from the object.
func (o *knownObject) readIdentity() error {
	if err := o.decode(); err != nil {
		return err
	}
	uid, _ := o.metadata["uid"].(string)
	version, _ := o.metadata["resourceVersion"].(string)
	if uid == "" || version == "" {
		return errNoIdentity
	}
	o.uid, o.version = types.UID(uid), version
	return nil
}

// stateDigest returns a digest of the fields that an apply of k can have set. The digest contains nothing
// that changes independently of the apply. For the status subresource that is the status, otherwise the
// whole object except the status. The only part of managedFields in the digest is the entry of k.
func (o *knownObject) stateDigest(k applyKey, a *apply, seed []byte) (digest, error) {
	if err := o.decode(); err != nil {
		return digest{}, err
	}
	entry := o.entry(k)
	if k.subresource == "status" {
		return digestOf(seed, map[string]any{"uid": o.metadata["uid"], "status": o.fields["status"], "entry": entry})
	}
	fields := maps.Clone(o.fields)
	if !a.hasStatus {
		delete(fields, "status")
	}
	metadata := maps.Clone(o.metadata)
	delete(metadata, "resourceVersion")
	// The generation moves with the spec, which is part of the state itself.
	delete(metadata, "generation")
	metadata["managedFields"] = entry
	fields["metadata"] = metadata
	return digestOf(seed, fields)
}

// entry returns the managedFields entry of the applies of k, or nil.
func (o *knownObject) entry(k applyKey) map[string]any {
	entries, _ := o.metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if entry["manager"] == k.manager && entry["operation"] == "Apply" && subresource == k.subresource {
			return entry
		}
	}
	return nil
}

// fieldSets returns the field set of each manager.
func (o *knownObject) fieldSets() []map[string]any {
	entries, _ := o.metadata["managedFields"].([]any)
	var sets []map[string]any
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if set, ok := entry["fieldsV1"].(map[string]any); ok {
			sets = append(sets, set)
		}
	}
	return sets
}

// isOwnedExactly reports whether the manager of k owns exactly the fields of the apply, and
// each field has the value of the apply.
func (o *knownObject) isOwnedExactly(k applyKey, a *apply) bool {
	var wanted map[string]any
	if o.decode() != nil || utiljson.Unmarshal(a.body, &wanted) != nil {
		return false
	}
	entry := o.entry(k)
	if entry == nil || entry["apiVersion"] != wanted["apiVersion"] {
		return false
	}
	owned, ok := entry["fieldsV1"].(map[string]any)
	if !ok {
		return false
	}
	// The identity of an object is in no field set.
	delete(wanted, "apiVersion")
	delete(wanted, "kind")
	metadata, _ := wanted["metadata"].(map[string]any)
	for _, identity := range []string{"name", "namespace", "uid", "resourceVersion"} {
		delete(metadata, identity)
	}
	if len(metadata) == 0 {
		delete(wanted, "metadata")
	}
	return ownsExactly(owned, o.fieldSets(), wanted, o.fields)
}

// digestOf returns a digest of seed and of v as JSON.
func digestOf(seed []byte, v any) (d digest, err error) {
	data, err := kube.Marshal(v)
	hash := sha256.New()
	hash.Write(seed)
	hash.Write(data)
	hash.Sum(d[:0])
	return d, err
}

// answer returns the answer to the apply a that is skipped: the current object, or the applied
// object with the current metadata.
func (o *knownObject) answer(a *apply) ([]byte, error) {
	if !o.isMetadataOnly {
		return o.object, nil
	}
	current := jsonscan.New(o.object)
	if ok, err := current.Find("metadata"); err != nil || !ok {
		return nil, errors.Join(errNoObject, err)
	}
	metadata, err := current.Raw()
	if err != nil {
		return nil, err
	}
	answer := append([]byte(`{"metadata":`), metadata...)
	body := jsonscan.New(a.body)
	err = body.Members(func(name []byte) error {
		value, err := body.Raw()
		if err != nil || string(name) == "metadata" {
			return err
		}
		answer = append(answer, ',')
		if answer, err = jsontext.AppendQuote(answer, name); err != nil {
			return err
		}
		answer = append(append(answer, ':'), value...)
		return nil
	})
	return append(answer, '}'), err
}
