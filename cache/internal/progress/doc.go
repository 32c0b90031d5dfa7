// Package progress follows the changes of one stream, and derives from them what the objects of
// the stream do not show: the newest change of each namespace, whether a watch is open and since
// when, and whether the stream works again after an error.
package progress
