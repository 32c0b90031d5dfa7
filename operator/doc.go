// Package operator runs the parts of a program, and adds what every operator has: flags,
// configuration, signals, logs, health, metrics and commands. [Main] is a whole main
// function:
//
//	func main() { operator.Main(operator.Watcher[Book](run)) }
//
// With --listen the program serves its health and its metrics, which docs/metrics.md lists.
//
// A feature is a package below this one. Its part adds flags, commands and pages to the program, and only programs that
// import the package link it:
//
//	operator/webhook     validators and defaulters, which API servers call before they store an object
//	operator/conversion  conversions between the versions of a kind
//	operator/livepage    a page for a browser, which shows what each reconcile did and why
//	operator/secure      the pages over TLS, for readers with a permission
//
// A [Program] has in addition flags, configuration, pages and metrics of its own. [Main] is short for the method Main
// of a Program that has only parts, as http.ListenAndServe is short for the method of an http.Server. A process whose
// function main is not about the operator alone calls [Run], with a client of its own.
//
// A [Task] is a function that runs beside the controllers. A Task, and the handlers of a Program,
// read from the cache with [controller.Runtime.CachedClient].
//
// The same program runs outside of a cluster with a kubeconfig, and inside of one with its
// ServiceAccount. It never applies its own CustomResourceDefinitions, because its account
// should not have that permission. Somebody else applies them, with
//
//	book crd | kubectl apply -f -
//
// # Logs
//
// On a terminal the log is text in colours (NO_COLOR switches them off). Anywhere else it is JSON, one object
// a line, with durations in seconds. While Main runs, it is the log of the packages slog and log, and of klog,
// the log of Kubernetes' libraries. [controller.Log] returns a logger for a reconcile. Its lines name the
// object. Lines of slog.InfoContext with the context of a reconcile name the object too: see [LogHandler].
//
// The program logs problems that somebody outside of the program must mend: the server cannot be reached, does
// not accept the credentials, or does not know a resource, or the account lacks a permission. It logs one line
// with what to do, and one more when the problem is over. It logs the errors of the streams of controllers
// when they are new, then at every doubling of their number, and when the stream works again. A function that
// follows objects by itself, with package watch, receives these errors and decides.
//
// # Leader election
//
// With --leader-elect several replicas of a program can run. One of them leads. The others stand by: their
// controllers have synced streams, and reconcile nothing. See [kube.Needs] and [OnEveryReplica] for
// what runs on every replica. No request starts after the deadline of the leader's lease, and a replica that
// loses its lease ends at once. docs/guide/administration.md describes what that guarantees, and what a shorter or
// longer --lease-duration costs.
//
// # The end
//
// After a signal the program takes no new work. It ends within 25 seconds by default: a reconcile that is
// under way has 15 seconds (see controller.ShutdownGrace) and 3 more to return, the last events have 4
// seconds, and requests for health and metrics 1 second. At the very end, a leader has 2 seconds to release
// its lease.
package operator
