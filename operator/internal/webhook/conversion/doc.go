// Package conversion converts the objects of a kind between its versions without loss, by functions of the author.
package conversion
