package operator

// Some code of this package is large, and most programs do not need it: the code for webhooks, for conversions, for the pages
// over TLS and for the live page. A program has such code only if one of its parts brings it. The linker leaves out a method
// that is called through an interface alone, if the program makes no value with this method. So the rest of the package calls
// the code through interfaces alone. Each code has a file and five names. The pages over TLS have these names, and the other
// codes have webhook, conversion or livePage in place of secure:
//
//	secureCode           an interface with what the code does
//	secureCodePart       an interface of the parts that bring the code. Its only method returns a secureCode
//	linkedSecureCode     a struct with this method. A part that embeds the struct is a secureCodePart
//	programSecureCode    the implementation of secureCode. Only linkedSecureCode uses this type
//	secureCodeIn         returns the secureCode that parts bring, or an error that names the missing part
//
// An example. [SecureListener] returns a secureListener, which embeds linkedSecureCode. For the flag --listen-secure,
// listenFlags.open calls secureCodeIn, and then the method openSecurePages of the interface secureCode. In a program that
// does not call SecureListener, nothing makes a secureListener. So the linker leaves out its method secureCode. Then nothing
// makes a programSecureCode, and the linker leaves out its method openSecurePages, with TLS for servers.
//
// A part embeds one method instead of all methods of the code, because the compiler writes each method of an embedded struct
// once more for each part that embeds the struct.
//
// The code for the check of round trips is for tests alone: see [linkedRoundTripCode].
