// Package events records for people what happens to objects, as Events of events.k8s.io.
// kubectl describe shows them. The cluster drops them after a while, an hour by default.
//
// A [Recorder] is a part of a program, and a field of the type that records with it:
//
//	type reconciler struct{ events *events.Recorder }
//
//	func main() {
//		r := reconciler{events.New("webapp-operator")}
//		operator.Main(r.events, controller.New(r.reconcile))
//	}
//
//	func (r reconciler) reconcile(ctx context.Context, app *WebApp, c *kube.Client) (controller.Action, error) {
//		…
//		r.events.Normal(app, "Scaled", "Scale", "scaled to %d replicas", app.Spec.Replicas)
//
// Events are hints. Recording an event never blocks and never fails. Events are written in the
// background. Events that the cluster does not accept are dropped, counted and logged.
// Information that must not be lost belongs into the status of the object.
//
// # Repetition
//
// A reconcile function runs often, and records the same event often. Occurrences with the
// same object, type, reason, action and note are one Event with a series. The first
// occurrence is written at once. Repetitions are counted. Their count is written after 10
// seconds, and then at intervals that double up to half an hour. After six minutes without a
// repetition the series is over: its final count is written, and the next occurrence is a
// new Event.
//
// Notes that are always new, such as one with a time in it, would each be a new Event. An
// object therefore has at most eight Events with one reason and action at a time. Further
// notes count as repetitions of the newest of these Events.
//
// A Recorder declares the permissions to create and patch events in events.k8s.io, in the namespaces that
// the program watches. The events of objects outside of namespaces are in the namespace default. A
// program that watches only other namespaces also declares the permissions there:
//
//	controller.Writes[eventsv1.Event](wire.VerbCreate, wire.VerbPatch).InNamespaces("default")
package events
