package cache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/kube"
)

var errNoObject = errors.New("that is no object")

// wanted is the body of an apply.
type wanted struct {
	body []byte
	// uid and version are conditions, and no content.
	uid     types.UID
	version string
	content digest
	// status is true if there is one: of a kind without the subresource, it is content.
	status      bool
	subresource string
}

// scanApply reads the body of an apply, without decoding it.
func scanApply(r *kube.Request) (*wanted, error) {
	w := &wanted{body: r.Body, subresource: r.Subresource}
	hash := sha256.New()
	// How the server is to take it is part of it.
	for _, parameter := range []string{"force", "fieldValidation"} {
		hash.Write([]byte(parameter + "=" + r.Query.Get(parameter) + "&"))
	}
	// The writer has its members in a fixed order; in another one it counts as another.
	err := eachMember(r.Body, func(name string, value jsontext.Value) error {
		w.status = w.status || name == "status"
		hash.Write([]byte(name))
		if name != "metadata" {
			hash.Write(value)
			return nil
		}
		return eachMember(value, func(name string, value jsontext.Value) error {
			switch name {
			case "uid":
				return kube.Unmarshal(value, &w.uid)
			case "resourceVersion":
				return kube.Unmarshal(value, &w.version)
			}
			hash.Write([]byte(name))
			hash.Write(value)
			return nil
		})
	})
	hash.Sum(w.content[:0])
	return w, err
}

// eachMember calls do for the members of a JSON object, in their order.
func eachMember(object []byte, do func(name string, value jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return errors.Join(errNoObject, err)
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := do(name, value); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// meant tells whether the conditions hold; if not, it is for the server to refuse. Every
// write of a status names the version that it was made from, to be sure of the object, and
// not to be refused when there is nothing to do.
func (w *wanted) meant(live *liveObject) bool {
	return (w.uid == "" || w.uid == live.UID) &&
		(w.version == "" || w.version == live.ResourceVersion || w.subresource == "status")
}

// liveObject is an object as the server has it.
type liveObject struct {
	Record
	object []byte
	// fields is the object decoded, once it was needed.
	fields, metadata map[string]any
}

func (l *liveObject) decode() error {
	if l.fields != nil {
		return nil
	}
	// Not kube.Unmarshal: in a float64, two large integers can be the same.
	if err := utiljson.Unmarshal(l.object, &l.fields); err != nil {
		return err
	}
	var ok bool
	if l.metadata, ok = l.fields["metadata"].(map[string]any); !ok {
		return errNoObject
	}
	return nil
}

// state is a digest of what an apply of k can have made, and nothing that changes without
// regard to it: of the status subresource the status, of the whole object everything but
// that; and of the field managers this one.
func (l *liveObject) state(k applyKey, want *wanted) (digest, error) {
	if err := l.decode(); err != nil {
		return digest{}, err
	}
	entry := l.entry(k)
	if k.subresource == "status" {
		return digestOf(map[string]any{"uid": l.UID, "status": l.fields["status"], "entry": entry})
	}
	fields := maps.Clone(l.fields)
	if !want.status {
		delete(fields, "status")
	}
	metadata := maps.Clone(l.metadata)
	delete(metadata, "resourceVersion")
	// It moves with the spec, which counts by itself.
	delete(metadata, "generation")
	metadata["managedFields"] = entry
	fields["metadata"] = metadata
	return digestOf(fields)
}

// entry is what the managedFields say of this manager's applies.
func (l *liveObject) entry(k applyKey) map[string]any {
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

// owned is what all managers own, each in its own tree.
func (l *liveObject) owned() []map[string]any {
	entries, _ := l.metadata["managedFields"].([]any)
	var trees []map[string]any
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if tree, ok := entry["fieldsV1"].(map[string]any); ok {
			trees = append(trees, tree)
		}
	}
	return trees
}

// owns tells whether the manager owns exactly the wanted fields, each with its value.
func (l *liveObject) owns(k applyKey, want *wanted) bool {
	var fields map[string]any
	if l.decode() != nil || utiljson.Unmarshal(want.body, &fields) != nil {
		return false
	}
	entry := l.entry(k)
	if entry == nil || entry["apiVersion"] != fields["apiVersion"] {
		return false
	}
	owned, ok := entry["fieldsV1"].(map[string]any)
	if !ok {
		return false
	}
	// What identifies the object is no field of it.
	delete(fields, "apiVersion")
	delete(fields, "kind")
	metadata, _ := fields["metadata"].(map[string]any)
	for _, identity := range []string{"name", "namespace", "uid", "resourceVersion"} {
		delete(metadata, identity)
	}
	if len(metadata) == 0 {
		delete(fields, "metadata")
	}
	return ownsExactly(owned, l.owned(), fields, l.fields)
}

func digestOf(v any) (digest, error) {
	data, err := kube.Marshal(v)
	return sha256.Sum256(data), err
}
