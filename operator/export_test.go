package operator

// The tests that use package yaretest, which imports this package, are in package operator_test.
// They share these names with the tests in this package.
type Gadget = gadget

var (
	Nowhere = nowhere
	Ask     = ask

	SecureMetricsAccess = secureMetricsAccess
)
