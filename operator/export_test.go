package operator

import "context"

// Package yaretest imports this package. The tests that use yaretest are in package
// operator_test. They share these names with the tests in this package.
type Gadget = gadget

var (
	Nowhere      = nowhere
	Ask          = ask
	LeaderObject = leaderObject
	LeaseAccess  = leaseAccess
)

// CallProgram runs a program of that name with args, in this process, and returns its status and output.
func CallProgram(ctx context.Context, name string, p Program, args ...string) (status int, stdout, stderr string) {
	var out, errs sharedBuffer
	status = invocation{Program: p, file: name, stdout: &out, stderr: &errs}.execute(ctx, args)
	return status, out.String(), errs.String()
}

const (
	LeaderAgent   = leaderAgent
	LeaderObjects = leaderObjects
)

// IncompletePolicy and IncompleteScalePolicy are for tests on a real server.
var (
	IncompletePolicy      = incompletePolicy
	IncompleteScalePolicy = incompleteScalePolicy
)
