package ident

const (
	// ConversionPrefix is the beginning of the keys of the annotations in which conversions between versions keep what a
	// version cannot express.
	ConversionPrefix = "versions.yare.dev/"
	// IncompleteAnnotation is the key of the annotation of an object from which a conversion has left something out.
	IncompleteAnnotation = ConversionPrefix + "incomplete"
)
