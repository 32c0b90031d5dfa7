// Package operator is the program around its parts: flags, configuration, signals, logs,
// health, metrics and subcommands. [Main] is a whole main function:
//
//	func main() { operator.Main(operator.Func[Book](run)) }
//
// With --listen it serves its health and its metrics, which docs/metrics.md lists.
//
// The program runs outside of a cluster with a kubeconfig and inside of one with its
// ServiceAccount, unchanged. It never puts its own CustomResourceDefinitions in place,
// because what runs should not be allowed to: somebody else does that, with
//
//	book crd | kubectl apply -f -
package operator
