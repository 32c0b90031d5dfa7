package convert

import (
	"strings"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

const (
	// Prefix is the beginning of the keys of the annotations of conversions. The name of a version and a hash follow, such
	// as in versions.yare.dev/v1.0123456789abcdef. The annotation keeps one value of the object in that version.
	Prefix = ident.ConversionPrefix
	// Incomplete is the key of the annotation of an object from which something was left out. The value is JSON: see
	// [Mark].
	Incomplete = ident.IncompleteAnnotation
)

// IsOwnAnnotation reports whether the key of an annotation belongs to conversions.
func IsOwnAnnotation(key string) bool { return strings.HasPrefix(key, Prefix) }

// VersionOfAnnotation returns the version in the key of an annotation that keeps a value. It reports whether the key is
// one.
func VersionOfAnnotation(key string) (string, bool) {
	name, isOwn := strings.CutPrefix(key, Prefix)
	version, _, hasHash := strings.Cut(name, ".")
	return version, isOwn && hasHash
}

// Mark is the value of the annotation [Incomplete], as JSON such as {"original":"v1","reason":"panic"}.
type Mark struct {
	// OriginalVersion is the version in which the object is complete.
	OriginalVersion string `json:"original"`
	// Reason is panic or size.
	Reason string `json:"reason"`
}

// encode returns the JSON of m.
func (m Mark) encode() string {
	return string(jsontree.Append(nil, map[string]any{"original": m.OriginalVersion, "reason": m.Reason}))
}
