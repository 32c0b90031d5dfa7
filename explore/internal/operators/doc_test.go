// Package public explores operators that others have published, and that do not use yare, as the programs
// that they are. Each has a module of its own, which only compiles it.
//
// The tests run only with YARE_PUBLIC=1: they download and compile hundreds of packages, and take long.
package public
