// Package public explores published operators of others, as compiled programs. The operators do not use
// yare. Each has a module of its own, which only compiles it.
//
// The tests run only with YARE_PUBLIC=1: they download and compile hundreds of packages, and take long.
package public
