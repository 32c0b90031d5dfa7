// Package dev is the loop behind `yare dev`: it builds an operator, starts a control plane,
// runs the operator against it, and repeats this whenever a source file is saved.
//
// What it decides, and why:
//
//   - A build that fails changes nothing: the operator of the last good build goes on. A mistake in a
//     type, which the operator reports instead of its CRDs, changes nothing either.
//   - CRDs are applied before the old operator is stopped, as a rollout would. A CRD that the server
//     refuses changes nothing either.
//   - The operator runs as a ServiceAccount with the permissions that it prints, and no others, as in a
//     cluster. The kubeconfig for other terminals has the rights of the administrator. The operator itself
//     refuses a request that it does not declare, with the line to add.
//   - The API server calls webhooks by an address that yare dev itself serves, and that stays the same for the
//     session. While the operator is restarted, kubectl waits for the answer of the next one: see webhookRelay. The
//     session has the address even if the operator has no webhook, because the address costs nothing, and the first webhook
//     may come with a save.
//   - An operator with the part of package livepage serves its page on a Unix socket. yare dev passes a browser on from an
//     address of the loopback interface that stays the same for the session: see livePage. The address is printed when
//     the page is there for the first time.
//   - The admission policies among the operator's manifests are applied after its CRDs. If the type check of the API
//     server finds a mistake in a policy, nothing changes.
//   - An operator that ends by itself with an error is started again, later each time (1 s
//     up to 30 s), as its Deployment would do. A save starts it at once. An operator that ends
//     with status 0 has nothing more to do, and is started again by the next save.
//   - The operator runs in the folder yare was called in, as `go run` would have it.
//   - What was removed from sample.yaml is not deleted from the cluster: the person at the
//     keyboard may want to see what becomes of it.
//   - A reconcile that changed something is one short line. Reconciles that changed nothing are
//     counted, because at work they are half of all. The other lines of the operator's log are
//     shown as they are on a terminal.
package dev
