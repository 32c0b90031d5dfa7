// Package yaretest gives Go tests a real Kubernetes control plane: etcd, API server,
// controllers with a garbage collector, scheduler, and nodes whose Pods are simulated.
//
//	func TestWebApp(t *testing.T) {
//		cluster := yaretest.Shared(t)
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
// # Programs
//
// [RunParts] runs the parts of an operator in the process of the test. They log to the test, see
// the namespaces that the test has made, and end with the test. [Program.Advance] moves their time:
// what is due in an hour is reconciled in a moment.
//
// [Build], [Cluster.Run] and [ServiceAccount] run an operator as a compiled program, with the rights
// that the operator will have. The time of such a program cannot be moved.
//
// The webhooks of a program that RunParts runs concern the namespaces of the test alone. RunParts returns when the API
// server calls them. [Cluster.ApplyPolicies] applies the admission policies that the manifests of a program have.
//
// A [Proxy] between a program and the server counts the requests of the program, checks that the
// program has come to rest, and cuts its connection at any of its writes.
//
// # Waiting
//
// [Eventually], [WaitFor], [WaitForCondition] and [WaitUntilGone] wait for what a program does.
// [Consistently] checks that something stays as it is. A wait lasts up to a minute, or up to the
// duration in the environment variable YARETEST_TIMEOUT; [Within] sets the timeout of one wait. No
// wait outlives go test -timeout, so that its error is shown.
//
// # Simulated Pods and Jobs
//
// No container runs, unless a control plane has a [RealNode]. A Pod is Running and Ready at once. A
// Pod whose restart policy is Never or OnFailure completes after a second, and its Job completes
// with it. Annotations on the Pod, or in the template of a Deployment or a Job, change that: see [Simulation].
//
// An operator that makes the template itself usually copies annotations from its custom resource.
// Otherwise a test sets them on the Pod when it exists.
//
// # Parallel tests
//
// Tests can run in parallel (t.Parallel), because each has a namespace of its own. What lives outside of namespaces
// concerns all tests of the process: custom resources that are cluster-scoped, and above all configurations of
// webhooks, API services and admission policies. A test that itself creates such objects uses a control plane of its
// own ([New]), or narrows them to its namespace (namespaceSelector), or does not run in parallel. A test that stops
// components of the control plane needs a control plane of its own.
//
// # The control plane
//
// The first test of a process that calls [Shared] starts the control plane, in about four seconds. It ends with the
// process. Its binary is built on the machine itself when it is needed for the first time, which takes some minutes,
// and then kept. The controllers are the real ones, with shorter intervals than those of a cluster.
//
// If the environment variable YARETEST_KUBECONFIG names a kubeconfig file, by an absolute path, tests use the cluster
// of its current context in place of a control plane on this machine. The variable KUBECONFIG is never used. The
// namespace kube-system of that cluster must have the label yare-test=allowed, because tests create and delete
// namespaces and CustomResourceDefinitions. Tests that need a control plane of their own, or stop components, are
// skipped there. docs/guide/testing.md has the rest.
package yaretest
