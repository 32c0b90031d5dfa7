package wire

// Verb is the action of a request, in the words of RBAC.
type Verb string

// The verbs of the API.
const (
	VerbGet              Verb = "get"
	VerbList             Verb = "list"
	VerbWatch            Verb = "watch"
	VerbCreate           Verb = "create"
	VerbUpdate           Verb = "update"
	VerbPatch            Verb = "patch"
	VerbDelete           Verb = "delete"
	VerbDeleteCollection Verb = "deletecollection"
)

// IsWrite reports whether the verb can change something.
func (v Verb) IsWrite() bool { return v != VerbGet && v != VerbList && v != VerbWatch }
