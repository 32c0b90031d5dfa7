package database

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// hashSeed is set once and for all, so that hashes of all databases can be compared.
var hashSeed = maphash.MakeSeed()

// metadata holds what a record needs of an object's JSON. The slices are parts of the JSON or of
// the metadata itself, which is used again and again: they are valid until the next read.
type metadata struct {
	namespace, name, uid, version   []byte
	generation                      int64
	isDeleting                      bool
	annotationsHash, finalizersHash uint64
	labelKeys, labelValues          []byte
	owners                          []ownerBytes
	labels                          labelWriter
}

type ownerBytes struct {
	group, kind, name, uid []byte
	isController           bool
}

// read reads the metadata of an object. It stops behind them, before the spec and mostly the
// status, which are the bulk. It leaves out what it cannot read, and its error is about the first
// such field; all other fields are set.
func (m *metadata) read(object []byte) error {
	m.reset()
	s := jsonscan.New(object)
	if ok, err := s.Find("metadata"); err != nil || !ok {
		return cmp.Or(err, errNoMetadata)
	}
	return s.Members(func(name []byte) error { return m.readMember(name, &s) })
}

// readItem does what read does for the JSON of i.
func (m *metadata) readItem(i Item) error {
	if len(i.metadata) == 0 {
		return m.read(i.json)
	}
	m.reset()
	var first error
	for _, member := range i.metadata {
		s := jsonscan.New(member.Value)
		if err := m.readMember(member.Name, &s); err != nil && first == nil {
			first = fmt.Errorf("%s: %w", member.Name, err)
		}
	}
	return first
}

// reset drops what was read.
func (m *metadata) reset() { *m = metadata{owners: m.owners[:0], labels: m.labels} }

// readMember reads the value at s of a member of the metadata.
func (m *metadata) readMember(name []byte, s *jsonscan.Scanner) (err error) {
	switch string(name) {
	case "namespace":
		m.namespace, err = s.TextOrNull()
	case "name":
		m.name, err = s.TextOrNull()
	case "uid":
		m.uid, err = s.TextOrNull()
	case "resourceVersion":
		m.version, err = s.TextOrNull()
	case "generation":
		m.generation, err = s.Number()
	case "deletionTimestamp":
		var raw []byte
		raw, err = s.Raw()
		m.isDeleting = err == nil && string(raw) != "null"
	case "annotations":
		m.annotationsHash, err = hashOf(s, "{}")
	case "finalizers":
		m.finalizersHash, err = hashOf(s, "[]")
	case "labels":
		err = s.Members(func(key []byte) error {
			v, err := s.TextOrNull()
			if err == nil {
				m.labels.add(key, v)
			}
			return err
		})
		m.labelKeys, m.labelValues = m.labels.finish()
	case "ownerReferences":
		err = m.readOwners(s)
	default:
		err = s.Skip()
	}
	return err
}

var errNoMetadata = errors.New("the object has no metadata")

func (m *metadata) readOwners(s *jsonscan.Scanner) error {
	var first error
	ok, err := s.Enter('[')
	for ok && err == nil {
		if ok, err = s.NextElement(']'); !ok || err != nil {
			break
		}
		var o ownerBytes
		e := s.Members(func(name []byte) (err error) {
			switch string(name) {
			case "apiVersion":
				var version []byte
				if version, err = s.TextOrNull(); err == nil {
					if slash := bytes.IndexByte(version, '/'); slash >= 0 {
						o.group = version[:slash]
					}
				}
			case "kind":
				o.kind, err = s.TextOrNull()
			case "name":
				o.name, err = s.TextOrNull()
			case "uid":
				o.uid, err = s.TextOrNull()
			case "controller":
				o.isController, err = s.Boolean()
			default:
				err = s.Skip()
			}
			return err
		})
		if errors.Is(e, jsonscan.ErrNotJSON) {
			err = e
		}
		first = cmp.Or(first, e)
		m.owners = append(m.owners, o)
	}
	return cmp.Or(err, first)
}

// hashOf reads a value and returns the hash of its text: a server writes a value in one way. The
// hash of an empty value is 0.
func hashOf(s *jsonscan.Scanner, empty string) (uint64, error) {
	raw, err := s.Raw()
	if err != nil || string(raw) == empty || string(raw) == "null" {
		return 0, err
	}
	return maphash.Bytes(hashSeed, raw), nil
}

// ownerList returns the owners, with strings of their own.
func (m *metadata) ownerList() []kube.Owner {
	if len(m.owners) == 0 {
		return nil
	}
	owners := make([]kube.Owner, 0, len(m.owners))
	for _, o := range m.owners {
		owners = append(owners, kube.Owner{
			Group: string(o.group), Kind: string(o.kind), Name: string(o.name),
			UID: types.UID(o.uid), Controller: o.isController,
		})
	}
	return owners
}

// hasSameOwners reports whether owners are equal to the owners that were read.
func (m *metadata) hasSameOwners(owners []kube.Owner) bool {
	if len(owners) != len(m.owners) {
		return false
	}
	for i, o := range m.owners {
		if w := owners[i]; string(o.uid) != string(w.UID) || string(o.name) != w.Name || string(o.kind) != w.Kind ||
			string(o.group) != w.Group || o.isController != w.Controller {
			return false
		}
	}
	return true
}
