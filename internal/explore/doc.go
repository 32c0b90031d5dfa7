// Package explore runs an operator against a real API server under the faults that Kubernetes allows,
// and compares what it leaves with what it leaves without faults.
//
// First come the reference runs: the steps of a user, without faults, three times, once with slow
// answers. What differs between references is masked. The requests of the references are the points
// at which faults can happen. Then each planned run makes the same steps with one fault, or with
// other values of the declared state. At the rest after each step, and over the whole history of the
// run, the objects are compared with the references. What differs is run again with more patience,
// before it is a finding.
package explore
