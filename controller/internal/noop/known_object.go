package noop

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/internal/jsonscan"
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
	s := jsonscan.New(o.object)
	if hasMetadata, err := s.Find("metadata"); err != nil || !hasMetadata {
		return errors.Join(errNoObject, err)
	}
	err := s.Members(func(name []byte) (err error) {
		var value []byte
		switch string(name) {
		case "uid":
			value, err = s.TextOrNull()
			o.uid = types.UID(value)
		case "resourceVersion":
			value, err = s.TextOrNull()
			o.version = string(value)
		default:
			err = s.Skip()
		}
		return err
	})
	if err == nil && (o.uid == "" || o.version == "") {
		err = errNoIdentity
	}
	return err
}

// stateDigest returns a digest of the fields that an apply of k can have set. The digest contains nothing
// that changes independently of the apply. For the status subresource that is the status, otherwise the
// whole object except the status. The only part of managedFields in the digest is the entry of k.
//
// The digest is one of the JSON as the server has sent it. A server writes the members of an object in one order. Another
// order has another digest, which costs a request.
func (o *knownObject) stateDigest(k applyKey, a *apply, seed []byte) (d digest, err error) {
	isOfStatus := k.subresource == "status"
	state := newContentHash(seed)
	hasMetadata := false
	s := jsonscan.New(o.object)
	err = s.Members(func(name []byte) error {
		switch isStatus := string(name) == "status"; {
		case string(name) == "metadata":
			hasMetadata = s.Next() == '{'
			return addMetadata(state, &s, k, isOfStatus)
		case isStatus && !isOfStatus && !a.hasStatus, !isStatus && isOfStatus:
			return s.Skip()
		}
		value, err := s.Raw()
		state.add(objectMember, name, value)
		return err
	})
	if err == nil && !hasMetadata {
		err = errNoObject
	}
	state.sum(&d)
	return d, err
}

// addMetadata adds the metadata at s to a state. If isOfStatus is true, it adds the uid and the entry of k alone.
func addMetadata(state *contentHash, s *jsonscan.Scanner, k applyKey, isOfStatus bool) error {
	return s.Members(func(name []byte) error {
		switch string(name) {
		case "resourceVersion", "generation": // the generation moves with the spec, which is part of the state itself
			return s.Skip()
		case "managedFields":
			return addEntry(state, s, k)
		}
		value, err := s.Raw()
		if !isOfStatus || string(name) == "uid" {
			state.add(metadataMember, name, value)
		}
		return err
	})
}

// addEntry adds the entry of the applies of k in the managedFields at s to a state, if there is one.
func addEntry(state *contentHash, s *jsonscan.Scanner, k applyKey) error {
	isAdded := false
	isList, err := s.Enter('[')
	for isList && err == nil {
		if isList, err = s.NextElement(']'); err != nil || !isList {
			break
		}
		var entry []byte
		if entry, err = s.Raw(); err == nil && !isAdded {
			if isAdded, err = isEntryOf(entry, k); isAdded {
				state.add(managedFieldsEntry, nil, entry)
			}
		}
	}
	return err
}

// isEntryOf reports whether an entry of managedFields is that of the applies of k.
func isEntryOf(entry []byte, k applyKey) (bool, error) {
	var manager, operation, subresource []byte
	s := jsonscan.New(entry)
	err := s.Members(func(name []byte) (err error) {
		switch string(name) {
		case "manager":
			manager, err = s.TextOrNull()
		case "operation":
			operation, err = s.TextOrNull()
		case "subresource":
			subresource, err = s.TextOrNull()
		default:
			err = s.Skip()
		}
		return err
	})
	return string(manager) == k.manager && string(operation) == "Apply" && string(subresource) == k.subresource, err
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
