package faults

// AcceptJSON is acceptJSON, for tests.
var AcceptJSON = acceptJSON
