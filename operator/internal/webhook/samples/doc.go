// Package samples makes objects of a version of a kind from its schema, for tests of conversions. The same seed gives
// the same objects.
package samples
