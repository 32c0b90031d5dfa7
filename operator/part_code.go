package operator

// Some code of this package is large, and most programs do not need it: the code for webhooks and for conversions. A
// program has such code only if one of its parts brings it. The linker leaves out a method that is called through an
// interface alone, if the program makes no value with this method. So the rest of the package calls the code through
// interfaces alone. Each code has a file and five names. Conversions have these names, and webhooks have webhook in
// place of conversion:
//
//	conversionCode         an interface with what the code does
//	conversionCodePart     an interface of the parts that bring the code. Its only method returns a conversionCode
//	linkedConversionCode   a struct with this method. A part that embeds the struct is a conversionCodePart
//	programConversionCode  the implementation of conversionCode. Only linkedConversionCode uses this type
//	conversionCodeIn       returns the conversionCode that parts bring, or an error that names the missing part
//
// An example. [Convert] returns a part that embeds linkedConversionCode. The command migrate calls conversionCodeIn,
// and then the method migrate of the interface conversionCode. In a program that does not call Convert, nothing makes
// such a part. So the linker leaves out its method conversionCode. Then nothing makes a programConversionCode, and the
// linker leaves out its method migrate.
//
// A part embeds one method instead of all methods of the code, because the compiler writes each method of an embedded
// struct once more for each part that embeds the struct.
//
// The code for the check of round trips is for tests alone: see [linkedRoundTripCode].
