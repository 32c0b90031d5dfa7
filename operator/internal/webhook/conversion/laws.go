package conversion

// A LawReport is what [CheckLaws] has found.
type LawReport struct {
	// Problems are the broken laws, each with the object and the path.
	Problems []string
	// Kept holds the fields that only an annotation keeps, by the step, such as "v2 to v1". Paths are sorted, and items
	// of lists and keys of maps are [*], such as .spec.ports[*].name.
	Kept map[string][]string
	// Incomplete holds the reasons of incomplete objects, each once.
	Incomplete []string
}

// CheckLaws converts each object to all other versions of k and back, and edits what it got. It reports what breaks one of
// the three laws of package conversion. The objects are JSON of any versions of k.
func CheckLaws(k *Kind, objects [][]byte) *LawReport { panic("not yet") }
