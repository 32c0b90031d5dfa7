// Package events records what happens to objects, for people: as Events, which kubectl
// describe shows and which the cluster drops after a while, an hour by default.
//
// A [Recorder] is a part of a program, and whoever records has it at hand:
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
//		r.events.Event(app, events.Normal, "Scaled", "Scale", "scaled to %d replicas", app.Spec.Replicas)
//
// Events are hints. Recording one never blocks and never fails; it happens in the
// background, and what the cluster cannot take is dropped, counted and logged. What must
// not be lost belongs into the status of the object.
//
// # Repetition
//
// A reconcile function runs often, and says the same often. What is the same (object, type,
// reason, action and note) is one Event with a series: the first occurrence is written at
// once, and repetitions are counted, and written after 10 seconds, then at intervals that
// double up to half an hour. When none has come for six minutes the series is over: its
// final count is written, and the next occurrence is a new Event.
//
// An object that says the same with ever new notes, such as one with a time in it, gets
// eight Events of a reason and an action at a time; further ones count as repetitions of
// the youngest of them.
//
// The account of the program needs the verbs create and patch for events in events.k8s.io,
// in the namespaces of the objects; in default for objects that have no namespace.
package events
