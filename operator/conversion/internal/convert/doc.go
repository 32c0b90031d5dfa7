// Package convert converts the objects of a kind between its versions without loss, by functions of the author. The
// package has no client, no listener and no certificates. A [Handler] answers the API server's calls for conversions.
//
// # Kept values
//
// A [Step] connects two versions by two functions, to and back. The steps of a [Kind] connect all of its versions as a
// tree. Let h be an object in one version, its original version. What to(h) cannot express is the difference between h
// and back(to(h)). Each place with a difference is kept in an annotation of the converted object: the path, the
// original value, and the returned value, which back gave. When the object returns to its original version, a kept
// value is put back where back still gives the returned value.
//
// For example, version 1 of CronJob has a schedule as a text, and version 2 has its five fields. Version 2 has no
// policy:
//
//	h            {"schedule":"@hourly","policy":"Forbid"}
//	to(h)        {"minute":"0","hour":"*",…}
//	back(to(h))  {"schedule":"0 * * * *"}
//	kept values  schedule: original "@hourly", returned "0 * * * *"
//	             policy:   original "Forbid",  returned nothing
//
// The object in version 2 is to(h) with two annotations. The key has the original version and a hash of the place:
//
//	versions.yare.dev/v1.a083a94c15515355  {"original":"@hourly","path":["spec","schedule"],"returned":"0 * * * *","to":"v2"}
//	versions.yare.dev/v1.d04659b6ecc085ae  {"from":2,"original":"Forbid","path":["spec","policy"],"to":"v2"}
//
// Without an edit, back gives both returned values, and the object in version 1 is h again. Now somebody sets the
// minute to 7:
//
//	edited        {"minute":"7","hour":"*",…}
//	back(edited)  {"schedule":"7 * * * *"}
//	restored      {"schedule":"7 * * * *","policy":"Forbid"}
//
// Back does not give "0 * * * *" any more, so the edit counts for the schedule. Back still gives no policy, so Forbid
// is put back. No annotation remains.
//
// Objects and maps are compared by their members. Lists with keys (x-kubernetes-list-type map) are compared by their
// items, and their order is kept too. Each other list is one value. A field in an object that back does not give at all
// has an annotation of its own, with the number of the first segment that is absent:
// {"from":2,…,"path":["spec","limits","cpu"]}. So the field is put back if limits is still absent, or if an edit has
// made limits. It is not put back if back gave limits before, and an edit has removed them.
//
// An apply prunes whole annotations: when a manager no longer applies the policy, the API server removes from the
// object in version 2 each annotation that exists only because of the policy. Therefore each place has its own
// annotation.
//
// # The three laws
//
//   - There and back is the identity, but for an object that is incomplete, or that does not fit the schema of its version.
//   - An edit of one field changes in the original version what back makes of the edit, and nothing else.
//   - There, back and there gives the same bytes. The members of objects are sorted, and the text of numbers never changes.
//
// [CheckLaws] checks them for the functions of an author. A write that changes nothing must store the same bytes,
// whatever was written before. So a kept value that an edit in the storage version has outdated stays in the
// annotations while the object is read in another version. Only an edit there drops such a value.
//
// # What is put back
//
// An annotation is input from strangers. A kept value is put back only if it fits the schema of its version: types,
// enums, patterns, bounds, formats, required fields, and keys of lists. CEL rules are not checked. A value that does
// not fit stays kept, as a leftover: in the original version it is in an annotation with the member left, and is put
// back when the schema accepts the value. So an object that does not fit the schema of its own version returns with
// such annotations.
//
// API servers convert parts of objects for an apply. An object without a uid is such a part: any field can be missing
// in it, and a null is put back everywhere. An annotation that is no kept value is carried along.
//
// A field that only a later release knows is copied where the CustomResourceDefinition has it in both versions: see
// [Kind.WithLiveSchemas].
//
// What does not decode into the Go type is taken out before the function sees the object. The difference has it, so it
// is kept like everything else. The encoder's empty fields, such as resources of a container, are left out of the
// result of a function where the schema does not require them, because most objects do not have them.
//
// The metadata of the result is that of the object. Functions see it without managedFields and without the annotations
// of this package. The result always has metadata, because an API server refuses a result without.
//
// # Incomplete objects
//
// What does not fit into 128 KiB of annotations is left out, the largest values first. So is the result of a function
// that panics. The object is then delivered with the annotation versions.yare.dev/incomplete, which names the version
// in which the object is complete: see [Mark]. No conversion removes the mark. Everything that can be kept is kept also
// in an incomplete object, so further conversions lose no more.
//
// # Paths of several steps
//
// A path of several steps converts step by step, and each step keeps its own values. For example, v1, v2 and v3 are a
// chain. An object of v1 that is read in v3 has annotations versions.yare.dev/v1.… with "to":"v2", and
// versions.yare.dev/v2.… with "to":"v3". When the object returns to v1, those of v2 are put back in v2, and then
// those of v1 in v1.
//
// # Calls
//
// A call passes these steps. Each step can answer the call:
//
//	path       no kind of this program has the path: HTTP 503 with Retry-After
//	length     the length of the body is missing or too large: HTTP 411 or 413
//	capacity   too many calls or bytes at once: HTTP 429 with Retry-After
//	review     the body is no ConversionReview of version v1: HTTP 400 or 503
//	versions   the program does not know the kind, the version of an object or the target: HTTP 503 with Retry-After
//	objects    each object is converted: a ConversionReview with all of them, in their order
//
// The API server repeats a call after HTTP 429 and 503 with Retry-After. So these answers close the connection: another
// replica, of another release, may be able to answer.
package convert
