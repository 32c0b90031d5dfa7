package cache

import "errors"

var errNoContent = errors.New("the cache.Object is the zero value")

// Object is one version of an object: its record, and its content on demand. It does not change
// when the store does.
type Object struct {
	Record
	entry *entry
}

// Bytes returns the JSON that the server sent, in memory of the caller's own. Each call
// decompresses it. Bytes may be called concurrently. Error: the Object is the zero value, or a
// newer version came whose metadata cannot be read; then it is a [*kube.DecodeError].
func (o Object) Bytes() ([]byte, error) { return o.AppendBytes(nil) }

// AppendBytes appends to dst what [Object.Bytes] returns.
func (o Object) AppendBytes(dst []byte) ([]byte, error) {
	if o.entry == nil {
		return dst, errNoContent
	}
	return o.entry.append(dst)
}
