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

// meetsPreconditions reports whether the current object meets the preconditions of the apply. If it does
// not, the server refuses the apply. An apply of a status always names the version of the object from
// which it was made. A later version of the same object is no reason to send an apply that would change
// nothing.
func (a *apply) meetsPreconditions(current *knownObject) bool {
	return (a.uid == "" || a.uid == current.uid) &&
		(a.version == "" || a.version == current.version || a.subresource == "status")
}
