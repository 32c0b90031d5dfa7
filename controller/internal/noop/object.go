package noop

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"maps"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

var (
	errNoObject   = errors.New("the JSON is not an object with metadata")
	errNoIdentity = errors.New("the object has no uid or no resourceVersion")
)

// apply is the body of an apply.
type apply struct {
	body []byte
	// uid and version are preconditions and not part of the content.
	uid     types.UID
	version string
	content digest
	// hasStatus is true if the body has a status: for a kind without the subresource, the
	// status is content.
	hasStatus   bool
	subresource string
}

// parseApply reads the body of an apply without decoding it. Its content starts with seed.
func parseApply(r *wire.Request, seed []byte) (*apply, error) {
	// The content type allows YAML too.
	if !jsontext.Value(r.Body).IsValid() {
		return nil, errNoObject
	}
	a := &apply{body: r.Body, subresource: r.Subresource}
	content := newContentHash(seed)
	// The parameters change what the server does with the body.
	content.add('f', nil, []byte(r.Query.Get("force")))
	content.add('v', nil, []byte(r.Query.Get("fieldValidation")))
	s := jsonscan.New(r.Body)
	// The client encodes members in a fixed order. The same members in another order count
	// as another content.
	err := s.Members(func(name []byte) error {
		if string(name) == "metadata" {
			return s.Members(func(name []byte) (err error) {
				var value []byte
				switch string(name) {
				case "uid":
					value, err = s.TextOrNull()
					a.uid = types.UID(value)
				case "resourceVersion":
					value, err = s.TextOrNull()
					a.version = string(value)
				default:
					value, err = s.Raw()
					content.add('m', name, value)
				}
				return err
			})
		}
		a.hasStatus = a.hasStatus || string(name) == "status"
		value, err := s.Raw()
		content.add('o', name, value)
		return err
	})
	content.sum(&a.content)
	return a, err
}

// contentHash hashes the members of an apply. The length of each part precedes the part, so
// that two sequences of members never hash the same bytes.
type contentHash struct {
	hash   hash.Hash
	prefix [1 + 2*8]byte
}

func newContentHash(seed []byte) *contentHash {
	c := &contentHash{hash: sha256.New()}
	c.hash.Write(seed)
	return c
}

// add adds one member. Place distinguishes the objects that a member can belong to.
func (c *contentHash) add(place byte, name, value []byte) {
	c.prefix[0] = place
	binary.LittleEndian.PutUint64(c.prefix[1:], uint64(len(name)))
	binary.LittleEndian.PutUint64(c.prefix[9:], uint64(len(value)))
	c.hash.Write(c.prefix[:])
	c.hash.Write(name)
	c.hash.Write(value)
}

func (c *contentHash) sum(d *digest) { c.hash.Sum(d[:0]) }

// meetsPreconditions reports whether the live object meets the preconditions of the apply. If it does
// not, the server refuses the apply. An apply of a status always names the version of the object from
// which it was made. A later version of the same object is no reason to send an apply that would change
// nothing.
func (a *apply) meetsPreconditions(live *liveObject) bool {
	return (a.uid == "" || a.uid == live.uid) &&
		(a.version == "" || a.version == live.version || a.subresource == "status")
}

// liveObject is an object as the server has it.
type liveObject struct {
	uid     types.UID
	version string
	object  []byte
	// metadataOnly is true if object is a PartialObjectMetadata.
	metadataOnly bool
	// fields is the decoded object, and metadata a part of it. Both are nil until decode.
	fields, metadata map[string]any
}

func (l *liveObject) decode() error {
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
func (l *liveObject) readIdentity() error {
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
func (l *liveObject) state(k applyKey, a *apply, seed []byte) (digest, error) {
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

// fieldSets returns the field set of each manager.
func (l *liveObject) fieldSets() []map[string]any {
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
func (l *liveObject) isOwnedExactly(k applyKey, a *apply) bool {
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

// answer returns the answer to the apply a that is skipped: the live object, or the applied
// object with the live metadata.
func (l *liveObject) answer(a *apply) ([]byte, error) {
	if !l.metadataOnly {
		return l.object, nil
	}
	live := jsonscan.New(l.object)
	if ok, err := live.Find("metadata"); err != nil || !ok {
		return nil, errors.Join(errNoObject, err)
	}
	metadata, err := live.Raw()
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
