// Command options reconciles Dumps. A Dump runs a command in a Pod of somebody else, and keeps the end of its log.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/pods"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// DumpSpec is the desired state of a Dump.
type DumpSpec struct {
	// The Pod of the database.
	Pod string `json:"pod" crd:"minLength=1"`
}

// Definition returns the definition of Dumps.
func (DumpSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Dump"}
}

// DumpStatus is the state of a Dump.
type DumpStatus struct {
	// When the last dump was made. If the status is lost, the dump is made once more.
	At *metav1.Time `json:"at,omitempty"`
	// How many bytes the last dump has.
	Bytes int `json:"bytes,omitempty"`
}

// Dump is a dump of a database.
type Dump = kube.CustomResource[DumpSpec, DumpStatus]

// dumper makes dumps by a command.
type dumper struct {
	command  string
	recorder *events.Recorder
	// dumpCount is the number of dumps since the start of the program.
	dumpCount atomic.Int64
}

func main() {
	d := &dumper{recorder: events.New("dumper")}
	operator.Program{
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&d.command, "command", "pg_dumpall", "the `COMMAND` that prints the dump")
		},
		Parts: func() ([]operator.Part, error) { return []operator.Part{d.controller(), d.recorder}, nil },
		Metrics: func(w io.Writer) {
			fmt.Fprintf(w, "# TYPE dumps_total counter\ndumps_total %d\n", d.dumpCount.Load())
		},
	}.Main()
}

func (d *dumper) controller() *controller.Controller[Dump] {
	return controller.New(d.reconcile,
		controller.Owns[corev1.ConfigMap](controller.AnyOwner()),
		controller.Paused("example.com/paused"),
		controller.FieldManager("dumper"),
		controller.FormerFieldManagers("manager"),
		controller.FormerMetadata("dumps.example.com/"),
		controller.OnResult(logSlowDumps),
		controller.Reads[corev1.Pod](wire.VerbGet).Subresource("log"),
		controller.Reads[corev1.Pod](wire.VerbGet).Subresource("exec"),
		controller.Writes[corev1.Pod](wire.VerbCreate).Subresource("exec"),
	).Backoff(func(d *Dump, err error, attempt int) time.Duration {
		if kube.IsNotFound(err) || kube.IsTooManyRequests(err) {
			return time.Minute // the Pod comes when it comes
		}
		return controller.DefaultBackoff(attempt)
	})
}

func (d *dumper) reconcile(ctx context.Context, dump *Dump, c *kube.Client) (controller.Action, error) {
	if at := dump.Status.At; at != nil && controller.Now(ctx).Before(at.Add(24*time.Hour)) {
		return controller.RequeueAfter(at.Add(24 * time.Hour).Sub(controller.Now(ctx))), nil // called for another reason
	}
	text, err := d.run(ctx, c, dump.Namespace, dump.Spec.Pod)
	if failed, ok := errors.AsType[*pods.ExitError](err); ok {
		d.recorder.Warning(dump, "DumpFailed", "Dump", "the command ended with %d", failed.Code)
		return controller.Done(), controller.Terminal(err) // only a change of the Dump can help
	}
	if err != nil {
		return controller.Done(), err
	}
	end, err := lastLines(ctx, c, dump.Namespace, dump.Spec.Pod)
	if err != nil {
		return controller.Done(), err
	}
	_, err = kube.Apply(ctx, c, kube.OwnedBy(dump, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: dump.Namespace, Name: dump.Name},
		Data:       map[string]string{"log": end},
	}))
	if err != nil {
		return controller.Done(), err
	}
	d.dumpCount.Add(1)
	d.recorder.Normal(dump, "Dumped", "Dump", "the dump has %d bytes", len(text))
	dump.Status.Bytes, dump.Status.At = len(text), &metav1.Time{Time: controller.Now(ctx)}
	return controller.RequeueAfter(24 * time.Hour), c.ApplyStatus(ctx, dump)
}

// run runs the command in a Pod, and returns what the command prints.
func (d *dumper) run(ctx context.Context, c *kube.Client, namespace, pod string) ([]byte, error) {
	var out, problems bytes.Buffer
	err := pods.Exec(ctx, c, namespace, pod, pods.Command{Args: []string{d.command}, Stdout: &out, Stderr: &problems})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, problems.Bytes())
	}
	return out.Bytes(), nil
}

// lastLines returns the last lines of the log of a Pod.
func lastLines(ctx context.Context, c *kube.Client, namespace, pod string) (string, error) {
	log, err := kube.Namespaced[corev1.Pod](c, namespace).Logs(ctx, pod, kube.LogOptions{Tail: 20, Since: time.Hour})
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	return string(text), err
}

// logSlowDumps logs the reconciles that took long, and the errors that no retry cures.
func logSlowDumps(r controller.Result) {
	if r.Outcome() == controller.OutcomeSuccess && r.Duration > time.Minute || controller.IsTerminal(r.Err) {
		slog.Warn("a dump needs attention", "dump", r.Object.Name, "took", r.Duration, "error", r.Err)
	}
}
