package noop

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube/wire"
)

// apply is the body of an apply.
type apply struct {
	body []byte
	// uid and version are preconditions and not part of the content.
	uid           types.UID
	version       string
	contentDigest digest
	// hasStatus is true if the body has a status: for a kind without the subresource, the
	// status is content.
	hasStatus   bool
	subresource string
}

// parseApply reads the body of an apply without decoding it. The hash of the content begins with seed.
func parseApply(r *wire.Request, seed []byte) (*apply, error) {
	// The content type allows YAML too.
	if !jsontext.Value(r.Body).IsValid() {
		return nil, errNoObject
	}
	a := &apply{body: r.Body, subresource: r.Subresource}
	content := newContentHash(seed)
	// The parameters change what the server does with the body.
	content.add(forceParameter, nil, []byte(r.Query.Get("force")))
	content.add(validationParameter, nil, []byte(r.Query.Get("fieldValidation")))
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
					content.add(metadataMember, name, value)
				}
				return err
			})
		}
		a.hasStatus = a.hasStatus || string(name) == "status"
		value, err := s.Raw()
		content.add(objectMember, name, value)
		return err
	})
	content.sum(&a.contentDigest)
	return a, err
}

// partKind is what a part of an apply or of an object is. Parts of different kinds with the same name and value have different hashes.
type partKind byte

const (
	forceParameter      partKind = 'f'
	validationParameter partKind = 'v'
	// objectMember is a member of the object, and metadataMember a member of its metadata.
	objectMember   partKind = 'o'
	metadataMember partKind = 'm'
	// managedFieldsEntry is an entry of managedFields.
	managedFieldsEntry partKind = 'e'
)

// contentHash hashes the parts of an apply or of an object. The lengths of a name and a value precede them, so that two sequences of
// parts never hash the same bytes.
type contentHash struct {
	hash   hash.Hash
	prefix [1 + 2*8]byte
}

func newContentHash(seed []byte) *contentHash {
	c := &contentHash{hash: sha256.New()}
	c.hash.Write(seed)
	return c
}

// add adds one part.
func (c *contentHash) add(kind partKind, name, value []byte) {
	c.prefix[0] = byte(kind)
	binary.LittleEndian.PutUint64(c.prefix[1:], uint64(len(name)))
	binary.LittleEndian.PutUint64(c.prefix[9:], uint64(len(value)))
	c.hash.Write(c.prefix[:])
	c.hash.Write(name)
	c.hash.Write(value)
}

func (c *contentHash) sum(d *digest) { c.hash.Sum(d[:0]) }

// meetsPreconditions reports whether the current object meets the preconditions of the apply. If it does
// not, the server refuses the apply. An apply of a status always names the version of the object from
// which it was made. A later version of the same object is no reason to send an apply that would change
// nothing.
func (a *apply) meetsPreconditions(current *knownObject) bool {
	return (a.uid == "" || a.uid == current.uid) &&
		(a.version == "" || a.version == current.version || a.subresource == "status")
}
