// Package configpublishing keeps the webhook configurations of a program as they should be, so that the API server calls the
// webhooks, and stops calling them in time.
//
// # Who writes what
//
// Each replica follows the configurations and the Namespace of the installation. Replicas of different releases can run at
// once, so a replica that does not lead changes only what all releases agree on:
//
//	what                                                  who           when
//	the bundle in an entry that exists                    any replica   at once
//	all entries go, because the Namespace ends            any replica   at once
//	entries are added, changed or removed                 the leader    within 10 s
//	the Namespace is the owner, by its present uid        the leader    within 10 s
//	a configuration that is missing is made               the leader    within 10 s
//
// No entry is published without a bundle. A write names the uid and the resourceVersion of the object that it changes, or a
// version that no object has. So one of several replicas succeeds, and the others read what it has written. There is no
// write while everything is right.
//
// # Fields of others
//
// The fields of [configuration.Entry] belong to this package. Other fields of an entry, such as objectSelector, stay as they
// are. So do labels, annotations, and other owners of a configuration.
package configpublishing
