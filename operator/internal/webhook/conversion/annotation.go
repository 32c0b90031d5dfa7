package conversion

import "strings"

const (
	// Prefix is the beginning of the keys of the annotations of conversions. The name of a version follows, such as in
	// versions.yare.dev/v1. The annotation keeps values of the object in that version.
	Prefix = "versions.yare.dev/"
	// Incomplete is the key of the annotation of an object from which something was left out. The value is JSON: see
	// [Mark].
	Incomplete = Prefix + "incomplete"
)

// IsOwnAnnotation reports whether the key of an annotation belongs to conversions.
func IsOwnAnnotation(key string) bool { return strings.HasPrefix(key, Prefix) }

// A Mark is the value of the annotation [Incomplete], as JSON such as {"home":"v1","reason":"panic"}.
type Mark struct {
	// Home is the version in which the object is complete.
	Home string `json:"home"`
	// Reason is panic or size.
	Reason string `json:"reason"`
}

// IncompleteMark returns the mark of an object with these annotations. It reports whether the object has one. A mark
// with another content than that of yare is a mark without a home.
func IncompleteMark(annotations map[string]string) (Mark, bool) { panic("not yet") }
