// Package store is a database of objects in memory. It keeps the JSON of each object, compressed
// against a dictionary made of other objects, beside the few decoded fields that selections and
// comparisons need. It finds objects by key, namespace, owner, label, and by the indexes of an
// author.
//
// A [Store] is read by anybody and changed by its [Writer] alone. Neither makes a request, and
// neither knows where the objects come from.
package store
