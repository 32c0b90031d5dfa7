// Package yaretest gives Go tests a real Kubernetes control plane: etcd, API server,
// controllers with a garbage collector, scheduler, and nodes whose Pods are simulated.
//
//	func TestBook(t *testing.T) {
//		cluster := yaretest.Start(t)
//		namespace := cluster.Namespace(t)
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
// [Build], [Cluster.Run] and [ServiceAccount] run an operator as the program that it is, with
// the rights that it will have; [WaitFor] and [WaitForCondition] wait for what it does; a
// [Proxy] between it and the server counts its requests, checks that it has come to rest, and
// cuts its connection at any of its writes.
//
// The first test of a process that calls [Start] starts the control plane, in about four
// seconds. All tests of the process share it, each in a namespace of its own. It ends with the
// process. Its binary is built on the machine itself when it is needed for the first time,
// which takes some minutes, and then kept.
package yaretest
