// Package faults has the faults that explorations inject. Each family of faults has one file with all that is
// particular to its kinds: the constants, the group, which runs to plan, what happens to requests, and the text.
//
// A fault passes through these stations:
//
//	PlanInput ───Plan──► Fault ──Arm──► Armed ──────────► RoundTrip, Decide    inside the proxy
//	                       │              └─Triggered──► AtTrigger, AtRest    ┐
//	                       └───────────────────────────► BeforeStep, AfterStep┴► Run
//
// A [Family] plans faults from a [PlanInput]: what the runs without faults have shown. The [Injector] arms
// the faults that concern requests or watches of a program. A fault happens when its trigger comes: the request of its point,
// or a change on its stream. What happens beyond the proxy, such as the restart of a program, the family does to a [Run].
//
// Example: the first patch of a ConfigMap in step 0 is answered with 503, and the server does not receive it.
//
//	p, err := faults.New(faults.Options{Target: config, Namespace: "run"})
//	session, err := p.Session("operator")           // the program uses session.Kubeconfig()
//	err = p.BeginStep(ctx, 0)
//	armed, err := p.Injector.Arm(faults.Fault{Kind: faults.Refused503, At: &proxy.Point{
//		Verb: "patch", Resource: "configmaps", Name: "page", ChangeHash: "5f0c…", Occurrence: 1,
//	}})
//	<-armed.Triggered()
//	p.Injector.Disarm()
//
// # To add a kind
//
// Add its constant and its behavior to the file of its family. A new family is a type that embeds baseFamily for what it
// does not do, and an entry in [Families]. Fault is a part of the files of findings, so its JSON does not change.
package faults
