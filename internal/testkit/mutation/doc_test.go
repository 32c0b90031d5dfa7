// Package mutation checks that the tests of a promise fail when the promise is broken. It has 100 small changes of
// yare's code. TestMutationsAreCaught makes one change at a time, and runs the tests that docs/guarantees.md names for
// the promise until one fails:
//
//	go test ./internal/testkit/mutation                                   # checks the results that are kept
//	go test ./internal/testkit/mutation -timeout 0 -v -try                # tries the mutations without a result
//	go test ./internal/testkit/mutation -timeout 0 -v -try -server=false  # without tests on a real API server
//	go test ./internal/testkit/mutation -run TestMutationsAreCaught/27 -timeout 0 -v -try
//
// The files of the work tree do not change: the go command sees a changed file by its flag -overlay.
// Each result is a line of results.jsonl. A run that was cut off continues: a mutation with a result is not tried a
// second time, unless the shape of its code has changed or it survived with fewer tests.
// The shape is the code without its names. Whoever changes only a name such that it is another mutation
// deletes the line of its result.
//
// # Patterns
//
// A mutation names the folder of a package, a declaration in it, a pattern and a replacement:
//
//	{29, 7, "internal/cache/internal/overlay", "Entry.isOld", `_e._isMarkedOld || _X`, `_X`}
//
// The declaration is a function, "Type.Method", or a constant or variable. It may stand in any file of the
// package. Exactly one place of the declaration fits the pattern. The test TestMutationsFitTheCode reports
// the mutations that do not fit.
//
// A pattern is Go code with wildcards. The names of wildcards begin with an underscore. A wildcard with a
// small letter stands for any identifier: a variable, a receiver or a field. A wildcard with a capital letter
// stands for any expression. A wildcard that occurs twice stands for the same code in both places. The
// replacement may use the wildcards of the pattern. In this function, _e stands for e, _isMarkedOld for
// isMarkedOld, and _X for the comparison:
//
//	func (e Entry) isOld() bool { return e.isMarkedOld || time.Since(e.recorded) > MaxAge }
//
// So the mutation makes of it:
//
//	func (e Entry) isOld() bool { return time.Since(e.recorded) > MaxAge }
//
// A pattern is one of:
//
//   - One or several expressions with commas between them. Several expressions fit a part of a list, for example
//     of the arguments of a call. A call that is a statement is deleted by an empty replacement.
//   - One or several statements with semicolons between them.
//   - The beginning of an if statement, "if X {", or of a case, "case X:". The rest stays as it is.
//
// Names of variables, receivers and fields are wildcards in a pattern. Names of functions, types and constants
// are not, because they say what the place means: who renames a function changes the word in the rows.
package mutation
