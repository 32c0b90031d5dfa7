package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// hashSeed is set once and for all, so that hashes of all stores can be compared.
var hashSeed = maphash.MakeSeed()

// metadata is what is read of an object's JSON for its record. The slices are parts of the
// JSON or of the metadata itself, which is used again and again: valid until the next read.
type metadata struct {
	namespace, name, uid, version []byte
	generation                    int64
	deleting                      bool
	annotations, finalizers       uint64
	labelKeys, labelValues        []byte
	owners                        []ownerBytes
	labels                        labelWriter
}

type ownerBytes struct {
	group, kind, name, uid []byte
	controller             bool
}

// read reads the metadata of an object. What follows them is not looked at: the spec, and
// mostly the status, which are the bulk. What cannot be read is left out, and the error is
// about the first such thing; everything else is there.
func (m *metadata) read(object []byte) error {
	*m = metadata{owners: m.owners[:0], labels: m.labels}
	s := scanner{data: object}
	if ok, err := s.enter('{'); err != nil || !ok {
		return errors.Join(errNotJSON, err)
	}
	for {
		more, err := s.more('}')
		if err != nil {
			return err
		}
		if !more {
			return errors.New("it has no metadata")
		}
		name, err := s.name()
		if err != nil {
			return err
		}
		if string(name) == "metadata" {
			break
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
	var first error
	err := m.members(&s, "metadata", &first, func(name []byte) (err error) {
		switch string(name) {
		case "namespace":
			m.namespace, err = s.textOrNull()
		case "name":
			m.name, err = s.textOrNull()
		case "uid":
			m.uid, err = s.textOrNull()
		case "resourceVersion":
			m.version, err = s.textOrNull()
		case "generation":
			m.generation, err = s.number()
		case "deletionTimestamp":
			var raw []byte
			raw, err = s.raw()
			m.deleting = err == nil && string(raw) != "null"
		case "annotations":
			m.annotations, err = hashOf(&s, "{}")
		case "finalizers":
			m.finalizers, err = hashOf(&s, "[]")
		case "labels":
			err = m.members(&s, "labels", &first, func(key []byte) error {
				v, err := s.textOrNull()
				if err == nil {
					m.labels.add(key, v)
				}
				return err
			})
			m.labelKeys, m.labelValues = m.labels.finish()
		case "ownerReferences":
			err = m.readOwners(&s, &first)
		default:
			err = s.skip()
		}
		return err
	})
	return errors.Join(first, err)
}

// members calls f for each member of the object that s is at. Malformed JSON ends it; any
// other error of f is the first one, or of no interest.
func (m *metadata) members(s *scanner, of string, first *error, f func(name []byte) error) error {
	ok, err := s.enter('{')
	for ok && err == nil {
		if ok, err = s.more('}'); !ok || err != nil {
			break
		}
		var name []byte
		if name, err = s.name(); err != nil {
			break
		}
		if e := f(name); errors.Is(e, errNotJSON) {
			err = e
		} else if e != nil && *first == nil {
			*first = fmt.Errorf("%s: %q: %w", of, name, e)
		}
	}
	return err
}

func (m *metadata) readOwners(s *scanner, first *error) error {
	ok, err := s.enter('[')
	for ok && err == nil {
		if ok, err = s.more(']'); !ok || err != nil {
			break
		}
		var o ownerBytes
		err = m.members(s, "ownerReferences", first, func(name []byte) (err error) {
			switch string(name) {
			case "apiVersion":
				var version []byte
				if version, err = s.textOrNull(); err == nil {
					if slash := bytes.IndexByte(version, '/'); slash >= 0 {
						o.group = version[:slash]
					}
				}
			case "kind":
				o.kind, err = s.textOrNull()
			case "name":
				o.name, err = s.textOrNull()
			case "uid":
				o.uid, err = s.textOrNull()
			case "controller":
				o.controller, err = s.boolean()
			default:
				err = s.skip()
			}
			return err
		})
		m.owners = append(m.owners, o)
	}
	return err
}

// hashOf reads a value and hashes how it is written, which a server does in one way. That
// of what is empty is 0.
func hashOf(s *scanner, empty string) (uint64, error) {
	raw, err := s.raw()
	if err != nil || string(raw) == empty || string(raw) == "null" {
		return 0, err
	}
	return maphash.Bytes(hashSeed, raw), nil
}

// ownerList are the owners, as strings of their own.
func (m *metadata) ownerList() []Owner {
	if len(m.owners) == 0 {
		return nil
	}
	owners := make([]Owner, 0, len(m.owners))
	for _, o := range m.owners {
		owners = append(owners, Owner{
			Group: string(o.group), Kind: string(o.kind), Name: string(o.name),
			UID: types.UID(o.uid), Controller: o.controller,
		})
	}
	return owners
}

// sameOwners tells whether owners are those that were read.
func (m *metadata) sameOwners(owners []Owner) bool {
	if len(owners) != len(m.owners) {
		return false
	}
	for i, o := range m.owners {
		if w := owners[i]; string(o.uid) != string(w.UID) || string(o.name) != w.Name || string(o.kind) != w.Kind ||
			string(o.group) != w.Group || o.controller != w.Controller {
			return false
		}
	}
	return true
}

// recordOf reads the record of an object's JSON.
func recordOf(object []byte) (Record, error) {
	var m metadata
	if err := m.read(object); err != nil {
		return Record{}, fmt.Errorf("read the metadata of an object: %w", err)
	}
	r := Record{
		Namespace: string(m.namespace), Name: string(m.name), UID: types.UID(m.uid), ResourceVersion: string(m.version),
		Generation: m.generation, Deleting: m.deleting, Annotations: m.annotations, Finalizers: m.finalizers,
		Owners: m.ownerList(), Size: len(object),
	}
	if len(m.labelKeys) > 0 {
		r.Labels = Labels{keys: unique.Make(string(m.labelKeys)), values: string(m.labelValues)}
	}
	return r, nil
}
