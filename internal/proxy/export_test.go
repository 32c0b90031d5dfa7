package proxy

// AcceptJSON is acceptJSON, for tests.
var AcceptJSON = acceptJSON

// NarrowNames is narrowNames, for tests.
var NarrowNames = narrowNames
