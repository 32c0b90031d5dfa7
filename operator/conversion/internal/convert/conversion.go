package convert

// Conversion is a converted object.
type Conversion struct {
	// Object is JSON. Its members are sorted by name.
	Object []byte
	// Namespace and Name are those of the object. They are empty for a part of an object.
	Namespace, Name string
	// From and To are the versions of the object before and after.
	From, To string
	// HasKept is true if an annotation of the result keeps what the version cannot express.
	HasKept bool
	// IsIncomplete is true if the result is marked as incomplete by this conversion or by an earlier one.
	IsIncomplete bool
	// Failures are what made the result incomplete in this conversion.
	Failures []Failure
}

// Failure is why something is not kept in a conversion.
type Failure struct {
	// From and To are the versions of the step.
	From, To string
	// Err names the reason without any content of the object: a panic, or the number of bytes to keep.
	Err error
	// Stack is the stack of a panic, or empty.
	Stack string
}
