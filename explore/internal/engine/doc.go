// Package engine runs an operator against a real API server under the faults that Kubernetes allows. The
// package compares the objects that the operator leaves under faults and without faults.
//
// The reference runs come first. They make the steps of a user three times without faults, once with slow
// answers. Differences between references are masked. The requests of the references are the points
// at which faults can happen. Then each planned run makes the same steps with one fault, or with
// other values of the declared state. At the rest after each step, and over the whole history of the
// run, the objects are compared with the references. A run with a difference is repeated, and waits for longer
// than before, until the difference is a finding.
//
// A run has parts with one job each. None of them knows the run:
//
//	run ──► userActor     makes the changes of the user in a step
//	    ──► stepInjector  injects the faults of a step; they act by runActions
//	    ──► replicas      start, end and restart the processes of the program
//	    ──► restWaiter    waits until nothing happens: a quietMeter measures for how long, a stateReader catches up with the server
//	    ──► stepJudge     compares the state at rest, and gives a wrong state time to become right
//	    ──► runResult     has the first verdict, and what the run has shown
package engine
