// Package slots finds numbered slots: by key, with a [Table], and by values, with an [Index].
// It holds nothing but numbers, because what is in the slots has the keys and the values. So
// both take a tenth of the memory of a map.
//
// None of the types may be used concurrently while it changes.
package slots
