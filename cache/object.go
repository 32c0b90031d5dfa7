package cache

import "errors"

var errNoContent = errors.New("there is no object")

// Object is an object of a store: its record, and its content on demand. It stays as it
// is when the store goes on.
type Object struct {
	Record
	entry *entry
}

// Bytes is the JSON that the server sent, in memory that is the caller's own. It is
// decompressed by each call, and can be called concurrently. It fails for the zero Object,
// and with a [*kube.DecodeError] for an object of which a newer version came that has no
// readable metadata.
func (o Object) Bytes() ([]byte, error) { return o.AppendBytes(nil) }

// AppendBytes appends what [Object.Bytes] returns to dst.
func (o Object) AppendBytes(dst []byte) ([]byte, error) {
	if o.entry == nil {
		return dst, errNoContent
	}
	return o.entry.append(dst)
}
