package wire

// Index finds the objects of one resource by values: see kube.NewIndex, which makes one. Its methods are safe for
// concurrent use. An Index is comparable.
type Index interface {
	// String returns the name of the index.
	String() string
	// Check returns an error unless the index can be used for the objects of r in the given representation.
	Check(r Resource, representation Representation) error
	// Values returns the values of an object, which is JSON.
	Values(object []byte) ([]string, error)
}
