// Package rules judges one run of a program by what the program itself did, without a comparison with other runs. A
// mistake that every run has is found in this way.
//
// A [Rule] has a file of its own, and [All] lists the rules:
//
//	rule               file
//	gone               left_object.go, with deletion_order.go
//	at rest            change_at_rest.go, with list_order.go
//	remade             recreation.go
//	ready too early    early_readiness.go
//	what others put    removed_addition.go
//	another's          unrelated_change.go
//	growth             growth.go
//
// [Judge] applies all rules to a [Run], which is plain data. The result is a list of violations:
//
//	violations := rules.Judge(&rules.Run{View: history.NewView(h, options), Requests: requests, Steps: steps})
//	// gone: configmaps/web is left after the user has deleted all objects
//
// The rules share this ground:
//
//   - Whether a program had a reason is judged by what the proxy has delivered or answered to the program, and never by what
//     the server had. What the program did is judged by the versions that the server has stored.
//   - A write counts if the server has stored a change. An apply that is answered with the same resource version is no
//     write.
//   - Only the fields of the program's own field managers count. Leases, Events and managedFields do not count.
//   - A cause is a delivered event, the answer to a read, or a time that has come.
package rules
