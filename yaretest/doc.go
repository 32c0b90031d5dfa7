// Package yaretest gives Go tests a real Kubernetes control plane: etcd, API server,
// controllers with a garbage collector, scheduler, and nodes whose Pods are simulated.
//
//	func TestWebApp(t *testing.T) {
//		cluster := yaretest.Start(t)
//		yaretest.Define[WebApp](t, cluster)
//		namespace := cluster.Namespace(t)
//		run := yaretest.RunParts(t, cluster, parts()...)
//		apps := kube.Namespaced[WebApp](cluster.Client(t), namespace)
//		…
//		yaretest.WaitForCondition(t, apps, "hello", "Ready")
//		run.Advance(time.Hour)
//		…
//	}
//
// It is a real control plane that does not let tests wait. Its garbage collector learns of a
// new kind within a second (in a cluster 30 s). A deleted namespace is emptied at once (5 s or
// more). The controllers of Deployments, ReplicaSets, StatefulSets and DaemonSets look at
// all their objects every 5 s. In a cluster they depend on a back-off that grows to minutes
// after many errors, such as the conflicts of a test that edits objects quickly: a Deployment
// whose sync failed then stays without observedGeneration and without a ReplicaSet.
//
// # Programs
//
// [RunParts] runs the parts of an operator in the process of the test. They log to the test, see
// the namespaces that the test has made, and end with the test. [Program.Advance] moves their time:
// what is due in an hour is reconciled in a moment.
//
// [Build], [Cluster.Run] and [ServiceAccount] run an operator as the program that it is, with
// the rights that it will have. The time of such a program cannot be moved.
//
// A [Proxy] between a program and the server counts the requests of the program, checks that the
// program has come to rest, and cuts its connection at any of its writes.
//
// # Waiting
//
// [Eventually], [WaitFor], [WaitForCondition] and [WaitUntilGone] wait for what a program does.
// [Consistently] checks that something stays as it is. They wait for a minute, or as long as the
// environment variable YARETEST_TIMEOUT says; [Within] sets the timeout of one wait. No wait
// outlives go test -timeout, so that its error is shown.
//
// # The control plane
//
// The first test of a process that calls [Start] starts the control plane, in about four
// seconds. All tests of the process share it, each in a namespace of its own. It ends with the
// process. Its binary is built on the machine itself when it is needed for the first time,
// which takes some minutes, and then kept.
package yaretest
