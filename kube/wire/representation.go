package wire

import "strings"

// Representation is how much of its objects a request asks for: one of the constants, or the representation
// of a projection, which kube.TypeOf returns.
type Representation string

const (
	// Full is the whole object.
	Full Representation = ""
	// MetadataOnly is a PartialObjectMetadata in place of every object.
	MetadataOnly Representation = "metadata"
)

// projectionPrefix begins the Representation of a projection. The fields follow.
const projectionPrefix = "fields:"

// Projection returns the representation of objects with only some fields. fields is the text of the fields, as
// kube.TypeOf makes it.
func Projection(fields string) Representation { return Representation(projectionPrefix + fields) }

// ProjectedFields returns the fields of a projection, and reports whether r is the representation of a
// projection.
func (r Representation) ProjectedFields() (fields string, ok bool) {
	return strings.CutPrefix(string(r), projectionPrefix)
}
