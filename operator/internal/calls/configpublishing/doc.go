// Package configpublishing keeps the webhook configurations of a program as they should be, so that the API server
// calls the webhooks, and stops calling them in time.
//
// # Who writes what
//
// Each replica follows the configurations and the Namespace of the installation. Replicas of different releases can run
// at once, so a replica that does not lead changes only what all releases agree on:
//
//	what                                                      who                   when
//	the bundle in an entry that exists                        any replica           at once
//	all entries go, because the Namespace ends                any replica           at once
//	the own entries go, because the Deployment is gone        a replica that ends   at once
//	entries are added, changed or removed                     the leader            within 10 s
//	the Namespace is the owner, by its present uid            the leader            within 10 s
//
// No entry is published without a bundle. A write names the uid and the resourceVersion of the object that it changes.
// So one of several replicas succeeds, and the others read what it has written. There is no write while everything is
// right.
//
// # The end of an installation
//
// Whatever removes an installation removes its objects in an order of its own, while the program runs and has its
// permissions. Helm 4 removes the configurations first, Helm 3 removes them last, and a GitOps tool removes all objects
// at once. A configuration that is left without a program refuses each write of its objects. So only an installation
// makes a configuration with a Service, and no replica sends a request that could make one. A program that publishes a
// URL, in development and in tests, makes its configurations, and removes them at its end.
//
// These are the states of a configuration and of the Deployment, and what each replica does. A Deployment that is being
// deleted counts as gone. A Deployment that the replica has never seen, and one that it may not read from the
// beginning, counts as there: a program can be installed without a Deployment. A configuration of the name is one of
// the program, whoever has made it.
//
//	configuration                     Deployment    a replica   the leader                   a replica that ends
//	absent                            there         nothing     logs the command             nothing
//	absent                            gone          nothing     nothing                      nothing
//	printed, or emptied by somebody   there         nothing     adds the entries             nothing
//	printed, or emptied by somebody   gone          nothing     nothing                      nothing
//	printed, or emptied by somebody   unreadable    nothing     reads again, adds nothing    nothing
//	with entries                      there         bundles     corrects, adds, removes      bundles
//	with entries                      gone          bundles     corrects and removes         removes the own entries
//	with entries                      unreadable    bundles     bundles, reads again         bundles
//	with entries of others            there         nothing     replaces them                nothing
//	with entries of others            gone          nothing     removes them                 nothing
//	each, and the Namespace ends      each          no entries  no entries                   no entries
//
// A replica that ends reads the Deployment at once, every 3 s until its last call has ended, and then once more.
//
// # Fields of others
//
// The fields of [configuration.Entry] belong to this package. Other fields of an entry stay as they are. So do the labels,
// the annotations and other owners of a configuration, a reinvocationPolicy that somebody has changed, and expressions of
// selectors by which others exclude objects: see [mergeSelector].
package configpublishing
