// Package faults has the faults that explorations inject. Each family of faults has one file with all that is
// particular to its kinds: the constants, the group, which runs to plan, what happens to requests, and the text. The
// families whose kinds are steps of the user share user_steps.go. What needs the samples of the user is planned by
// package engine: transitions, other values, similar names, and the writes that are denied until the next step.
//
// The name of a kind begins with what happens to a request:
//
//	refused-403     one request is answered with 403, and the server does not receive it. The next try passes:
//	                single_request.go
//	denied-role     a write is answered with 403 again and again, for some seconds: denied.go
//	denied-invalid  a write is answered with 422 again and again, until the user's next step: denied_invalid.go
//	committed-504   the server carries out one request, and its answer is lost: single_request.go
//
// So a client that repeats a refused request hides the refusal. A denial comes to the program.
//
// A fault passes through these stations:
//
//	PlanInput ───Plan──► Fault ──Arm──► Armed ──────────► RoundTrip, Decide    inside the proxy
//	                       │              └─Triggered──► AtTrigger, AtRest    ┐
//	                       └───────────────────────────► BeforeStep, AfterStep┴► Run
//
// A [Family] plans faults from a [PlanInput]: what the runs without faults have shown. The [Injector] arms
// the faults that concern requests or watches of a program. A fault happens when its trigger comes: the request of its
// point, or a change on its stream. What happens beyond the proxy, such as the restart of a program, the family does to
// a [Run].
//
// Example: the first patch of a ConfigMap in step 0 is answered with 503, and the server does not receive it.
//
//	p, err := faults.New(faults.Options{Target: config, Namespace: "run"})
//	session, err := p.NewSession("operator")           // the program uses session.Kubeconfig()
//	err = p.BeginStep(ctx, 0)
//	armed, err := p.Injector.Arm(faults.Fault{Kind: faults.Refused503, At: &proxy.Point{
//		Verb: "patch", Resource: "configmaps", Name: "page", ChangeHash: "5f0c…", Occurrence: 1,
//	}})
//	<-armed.Triggered()
//	p.Injector.Disarm()
//
// # To add a kind
//
// Add its constant and its behavior to the file of its family. A new family is a type that embeds baseFamily for what
// it does not do, and an entry in [Families]. Fault is a part of the files of findings: a family whose JSON changes
// reads earlier files by its method fromEarlierFile.
package faults
