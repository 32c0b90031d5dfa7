// Package yaretest gives Go tests a real Kubernetes control plane: etcd, API server,
// controllers with a garbage collector, scheduler, and nodes whose Pods are simulated.
//
//	func TestBook(t *testing.T) {
//		cluster := yaretest.Start(t)
//		namespace := cluster.Namespace(t)
//		…
//	}
//
// [Build], [Cluster.Run] and [ServiceAccount] run an operator as the program that it is, with
// the rights that it will have; [WaitFor] and [WaitForCondition] wait for what it does; a
// [Proxy] between it and the server counts its requests, says whether it has come to rest,
// and cuts its connection at any of its writes.
//
// The first test of a process that asks starts the control plane, in about four seconds,
// and all tests of the process share it, each in a namespace of its own; it is gone with
// the process. Its binary is built on the machine itself when it is needed for the first
// time, which takes some minutes, and then kept.
package yaretest
