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

// knownObject is an object in the state that the server certainly has: the cache shows it, or an apply was answered with it.
type knownObject struct {
	uid     types.UID
	version string
	object  []byte
	// isMetadataOnly is true if object is a PartialObjectMetadata.
	isMetadataOnly bool
	// fields is the decoded object, and metadata a part of it. Both are nil until decode.
	fields, metadata map[string]any
}

func (l *knownObject) decode() error {
	if l.fields != nil {
		return nil
	}
	// kube.Unmarshal would decode two large integers into the same float64.
	if err := utiljson.Unmarshal(l.object, &l.fields); err != nil {
		return err
	}
	var ok bool
	if l.metadata, ok = l.fields["metadata"].(map[string]any); !ok {
		return errNoObject
	}
	return nil
}

// readIdentity sets uid and version from the object.
func (l *knownObject) readIdentity() error {
	if err := l.decode(); err != nil {
		return err
	}
	uid, _ := l.metadata["uid"].(string)
	version, _ := l.metadata["resourceVersion"].(string)
	if uid == "" || version == "" {
		return errNoIdentity
	}
	l.uid, l.version = types.UID(uid), version
	return nil
}

// state returns a digest of the fields that an apply of k can have set. The digest contains nothing
// that changes independently of the apply. For the status subresource that is the status, otherwise the
// whole object except the status. The only part of managedFields in the digest is the entry of k.
func (l *knownObject) state(k applyKey, a *apply, seed []byte) (digest, error) {
	if err := l.decode(); err != nil {
		return digest{}, err
	}
	entry := l.entry(k)
	if k.subresource == "status" {
		return digestOf(seed, map[string]any{"uid": l.metadata["uid"], "status": l.fields["status"], "entry": entry})
	}
	fields := maps.Clone(l.fields)
	if !a.hasStatus {
		delete(fields, "status")
	}
	metadata := maps.Clone(l.metadata)
	delete(metadata, "resourceVersion")
	// The generation moves with the spec, which is part of the state itself.
	delete(metadata, "generation")
	metadata["managedFields"] = entry
	fields["metadata"] = metadata
	return digestOf(seed, fields)
}

// entry returns the managedFields entry of the applies of k, or nil.
func (l *knownObject) entry(k applyKey) map[string]any {
	entries, _ := l.metadata["managedFields"].([]any)
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
func (l *knownObject) fieldSets() []map[string]any {
	entries, _ := l.metadata["managedFields"].([]any)
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
func (l *knownObject) isOwnedExactly(k applyKey, a *apply) bool {
	var wanted map[string]any
	if l.decode() != nil || utiljson.Unmarshal(a.body, &wanted) != nil {
		return false
	}
	entry := l.entry(k)
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
	return ownsExactly(owned, l.fieldSets(), wanted, l.fields)
}

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
func (l *knownObject) answer(a *apply) ([]byte, error) {
	if !l.isMetadataOnly {
		return l.object, nil
	}
	current := jsonscan.New(l.object)
	if ok, err := current.Find("metadata"); err != nil || !ok {
		return nil, errors.Join(errNoObject, err)
	}
	metadata, err := current.Raw()
	if err != nil {
		return nil, err
	}
	answer := append([]byte(`{"metadata":`), metadata...)
	applied := jsonscan.New(a.body)
	err = applied.Members(func(name []byte) error {
		value, err := applied.Raw()
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
