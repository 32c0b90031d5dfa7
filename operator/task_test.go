package operator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

func TestTask(t *testing.T) {
	t.Parallel()
	wrong := errors.New("it went wrong")
	var log sharedBuffer
	finished := false
	failing := Task("report", func(_ context.Context, rt *controller.Runtime) error {
		rt.Log.Info("hello")
		return wrong
	})
	env := environment{log: slog.New(slog.NewTextHandler(&log, nil))}
	err := runParts(t.Context(), noServer(), env, []Part{failing, part(func(ctx context.Context) error {
		<-ctx.Done()
		finished = true
		return nil
	})})
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "the task report: it went wrong") || !finished {
		t.Errorf("finished %t, %v", finished, err)
	}
	checkText(t, "the log", log.String(), []string{"msg=hello task=report"})

	// The end of the program is no error of a task.
	ctx, cancel := context.WithCancel(t.Context())
	waiting := Task("wait", func(ctx context.Context, _ *controller.Runtime) error { cancel(); <-ctx.Done(); return ctx.Err() })
	if err := Run(ctx, noServer(), waiting); err != nil {
		t.Error(err)
	}
	for want, wrong := range map[string]Part{
		"the name of a task is empty":         Task("", func(context.Context, *controller.Runtime) error { return nil }),
		`the function of the task "x" is nil`: Task("x", nil),
	} {
		if err := Run(t.Context(), noServer(), wrong); err == nil || err.Error() == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, not %s", err, want)
		}
	}
}

// The client for tasks reads from the streams of the controllers, and what it has written itself.
// It reads from the server what no stream shows.
func TestCachedClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		of := func(name string) *gadget {
			return &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		}
		if _, err := kube.Everywhere[gadget](server.Client()).Create(t.Context(), of("one")); err != nil {
			t.Fatal(err)
		}
		follower := controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) { return controller.Done(), nil })
		reads := func() (n int) {
			for _, e := range server.Requests() {
				if !e.Request.Verb.IsWrite() {
					n++
				}
			}
			server.ForgetRequests()
			return n
		}
		err := Run(t.Context(), server.Client(), follower, Task("read", func(ctx context.Context, rt *controller.Runtime) error {
			synctest.Wait() // the stream is synced
			server.ForgetRequests()
			c := rt.CachedClient()
			if _, err := kube.Get[gadget](ctx, c, "default", "one"); err != nil || reads() != 0 {
				t.Errorf("an object of the stream is not read from the cache, %v", err)
			}
			if _, err := kube.Get[route](ctx, c, "default", "one"); !kube.IsNotFound(err) || reads() != 1 {
				t.Errorf("an object without a stream is not read from the server, %v", err)
			}
			// The watch shows no change from here on.
			for _, stream := range server.Streams() {
				stream.Freeze()
			}
			if _, err := kube.Everywhere[gadget](c).Create(ctx, of("two")); err != nil {
				t.Error(err)
			}
			if _, err := kube.Get[gadget](ctx, c, "default", "two"); err != nil || reads() != 0 {
				t.Errorf("its own write is not read, %v", err)
			}
			return errors.New("done")
		}))
		if err == nil || !strings.Contains(err.Error(), "done") {
			t.Error(err)
		}
	})
}

// Regression: an apply of the client for tasks took an object of somebody else over, without being asked to.
func TestCachedClientTakesNothingOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		of := func(name string) *gadget {
			return &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		}
		theirs := server.Client().WithFieldManager("somebody")
		if _, err := kube.Apply(t.Context(), theirs, of("theirs")); err != nil {
			t.Fatal(err)
		}
		owner, err := kube.Apply(t.Context(), theirs, of("owner"))
		if err != nil {
			t.Fatal(err)
		}
		err = Run(t.Context(), server.Client(), Task("apply", func(ctx context.Context, rt *controller.Runtime) error {
			c := rt.CachedClient().WithFieldManager("us")
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(owner, of("theirs"))); !errors.Is(err, kube.ErrForeignChild) {
				t.Errorf("the apply to an object of somebody else returned %v", err)
			}
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(owner, of("ours"))); err != nil {
				t.Errorf("the apply to a new object: %v", err)
			}
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(owner, of("theirs")), kube.Adopt()); err != nil {
				t.Errorf("the apply with Adopt: %v", err)
			}
			if _, err := kube.Apply(ctx, c, of("theirs")); err != nil {
				t.Errorf("the apply without an owner: %v", err)
			}
			return errors.New("done")
		}))
		if err == nil || !strings.Contains(err.Error(), "done") {
			t.Error(err)
		}
	})
}

// Regression: by a label of OwnsByLabel, a task took an object of somebody else over, without being asked to.
func TestTaskTakesNothingOverByLabel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		of := func(name string) *gadget {
			return &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		}
		theirs := server.Client().WithFieldManager("somebody")
		apply := func(c *kube.Client, g *gadget, opts ...kube.ApplyOption) (*gadget, error) {
			return kube.Apply(t.Context(), c, g, opts...)
		}
		var owners []*gadget
		for _, name := range []string{"owner", "other"} {
			owner, err := apply(theirs, of(name))
			if err != nil {
				t.Fatal(err)
			}
			owners = append(owners, owner)
		}
		owner, other := owners[0], owners[1]
		for _, g := range []*gadget{of("plain"), kube.OwnedByLabel(other, "owner", of("labelled")), kube.OwnedBy(other, of("controlled"))} {
			if _, err := apply(theirs, g); err != nil {
				t.Fatal(err)
			}
		}
		idle := controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) { return controller.Done(), nil },
			controller.OwnsByLabel[gadget]("owner"))
		err := Run(t.Context(), server.Client(), idle, Task("apply", func(ctx context.Context, rt *controller.Runtime) error {
			for _, c := range []*kube.Client{rt.Client.WithFieldManager("us"), rt.CachedClient().WithFieldManager("us")} {
				for _, name := range []string{"plain", "labelled", "controlled"} {
					if _, err := apply(c, kube.OwnedByLabel(owner, "owner", of(name))); !errors.Is(err, kube.ErrForeignChild) {
						t.Errorf("the apply to the %s object of somebody else returned %v", name, err)
					}
				}
				for _, name := range []string{"labelled", "controlled"} {
					if _, err := apply(c, kube.OwnedByLabel(owner, "owner", of(name)), kube.Adopt()); !errors.Is(err, kube.ErrForeignChild) {
						t.Errorf("the apply with Adopt to the %s object of another owner returned %v", name, err)
					}
				}
				for range 2 {
					if _, err := apply(c, kube.OwnedByLabel(owner, "owner", of("ours"))); err != nil {
						t.Errorf("the apply to an own object: %v", err)
					}
				}
			}
			if _, err := apply(rt.Client.WithFieldManager("us"), kube.OwnedByLabel(owner, "owner", of("plain")), kube.Adopt()); err != nil {
				t.Errorf("the apply with Adopt: %v", err)
			}
			return errors.New("done")
		}))
		if err == nil || !strings.Contains(err.Error(), "done") {
			t.Error(err)
		}
	})
}

// The program's own namespace and Pod come from the downward API, else from the files of the Pod
// and the name of the host, else from the kubeconfig.
func TestOwnPod(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment     map[string]string
		namespace, want string
	}{
		"outside":      {nil, "configured", ""},
		"in a Pod":     {map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "configured", host},
		"downward API": {map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAMESPACE": "mine", "POD_NAME": "op-0"}, "mine", "op-0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"KUBERNETES_SERVICE_HOST", "POD_NAMESPACE", "POD_NAME"} {
				t.Setenv(variable, c.environment[variable])
			}
			var namespace, pod string
			status, _, stderr := callProgram([]string{"--kubeconfig", nowhere(t)}, Program{Parts: func() ([]Part, error) {
				return []Part{Task("identity", func(_ context.Context, rt *controller.Runtime) error {
					namespace, pod = rt.Namespace, rt.Pod
					return nil
				})}, nil
			}})
			if want := strings.Replace(c.namespace, "configured", "default", 1); status != 0 || namespace != want || pod != c.want {
				t.Errorf("status %d, namespace %q, Pod %q, %s", status, namespace, pod, stderr)
			}
		})
	}
}
