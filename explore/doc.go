// Package explore runs an operator many times against a real API server under the faults that Kubernetes
// allows, and compares what the operator leaves with what it leaves without faults.
//
//	func TestWebApp(t *testing.T) {
//		explore.Run(t, explore.Binary{Path: "."}, explore.Settings{})
//	}
//
// The operator is a program ([Binary]), or parts that run in the process of the test ([Parts]). The program
// need not use yare. The user of the operator applies objects and deletes them: the objects in the file
// sample.yaml, or the steps of Settings.Scenario.
//
// Three runs without faults are the references. Differences between the references are masked. Every other
// run has one fault, such as a crash before a write, or other values in the objects of the user. The objects
// at the rest after each step, and the whole history of the run, must be those of the references. [Settings] add
// checks, bound the time, and leave out differences that are intended.
//
// The package is unstable: names and the file formats of reports can change in each release.
package explore
