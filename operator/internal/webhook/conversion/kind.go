package conversion

import "k8s.io/apimachinery/pkg/runtime/schema"

// A Kind converts the objects of a kind between its versions. A Kind is safe for concurrent use.
type Kind struct {
	versions []Version
}

// NewKind returns the kind with versions, which steps connect as a tree. Versions that are not served belong to the tree
// too. Each error names the culprit and the way out:
//
//   - an error of a step: see [Step.Err]
//   - versions of two kinds, or a version that is given twice
//   - a step to a version that is not given
//   - a version that no path connects with the others, and a second path between two versions
//   - no stored version, or two of them
//   - a pattern of a schema that is no regular expression
func NewKind(versions []Version, steps []*Step) (*Kind, error) { panic("not yet") }

// GroupKind returns the group and the name of the kind.
func (k *Kind) GroupKind() schema.GroupKind { panic("not yet") }

// Versions returns the versions in the order of [NewKind].
func (k *Kind) Versions() []Version { return k.versions }

// Path returns the path of the URL of conversions, such as /convert.cronjobs.example.com.
func (k *Kind) Path() string { panic("not yet") }

// Convert returns an object in another version of k. Convert never fails because of the content of an object, or because of
// a function: what cannot be converted is kept, or the result is marked as incomplete.
//
// Errors: object is no JSON object, its kind is not k, or its version or the target is no version of k.
func (k *Kind) Convert(object []byte, target string) (Conversion, error) { panic("not yet") }
