package yaretest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

type ReminderSpec struct {
	Text string `json:"text"`
}

type ReminderStatus struct {
	// Count is how often it has reminded.
	Count int `json:"count"`
	// Last is when it reminded for the last time.
	Last metav1.Time `json:"last"`
}

func (ReminderSpec) Definition() kube.Definition {
	return kube.Definition{Group: "run.example.com", Version: "v1", Kind: "Reminder"}
}

type Reminder = kube.CustomResource[ReminderSpec, ReminderStatus]

// remind reminds every hour.
func remind(ctx context.Context, r *Reminder, c *kube.Client) (controller.Action, error) {
	now := controller.Now(ctx)
	if left := r.Status.Last.Add(time.Hour).Sub(now); left > 0 {
		return controller.RequeueAfter(left), nil
	}
	slog.InfoContext(ctx, "reminding", "text", r.Spec.Text)
	r.Status = ReminderStatus{Count: r.Status.Count + 1, Last: metav1.NewTime(now.Truncate(time.Second))}
	return controller.RequeueAfter(time.Hour), c.ApplyStatus(ctx, r)
}

func reminder(namespace, text string) *Reminder {
	return &Reminder{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: ReminderSpec{Text: text}}
}

// Programs of tests that run at the same time see their own objects, log to their own tests, and
// end with them.
func TestRunParts(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Reminder](t, cluster)
	var tests sync.WaitGroup
	for i := range 3 {
		tests.Go(func() {
			text := fmt.Sprintf("text-%d", i)
			var ended atomic.Bool
			r := record(t, text, func(t testing.TB) {
				namespace := cluster.Namespace(t)
				reminders := kube.Namespaced[Reminder](cluster.Client(t), namespace)
				yaretest.RunParts(t, cluster, controller.New(remind), task(func(ctx context.Context, _ *kube.Client) error {
					<-ctx.Done()
					slog.InfoContext(ctx, "the task has ended")
					ended.Store(true)
					return nil
				}))
				if _, err := reminders.Create(t.Context(), reminder(namespace, text)); err != nil {
					t.Fatal(err)
				}
				yaretest.WaitFor(t, reminders, "r", func(r *Reminder) error {
					if r.Status.Count != 1 {
						return fmt.Errorf("it has reminded %d times", r.Status.Count)
					}
					return nil
				})
			})
			if len(r.failures) > 0 {
				t.Errorf("%q", r.failures)
			}
			if !ended.Load() {
				t.Error("the program did not end with its test")
			}
			log := r.text()
			for _, part := range []string{"msg=reminding text=" + text, "msg=reconciled", "the task has ended"} {
				if strings.Count(log, part) < 1 {
					t.Errorf("the test did not get %q:\n%s", part, log)
				}
			}
			for other := range 3 {
				if text := fmt.Sprintf("text=text-%d", other); other != i && strings.Contains(log, text) {
					t.Errorf("the test got %s of another test:\n%s", text, log)
				}
			}
		})
	}
	tests.Wait()
}

// task returns a part that runs a function.
func task(run func(ctx context.Context, c *kube.Client) error) operator.Part {
	return operator.Watcher[Reminder](run)
}

// service is a part that ends after the others.
type service struct{ ended chan<- string }

func (s service) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }
func (s service) Start(ctx context.Context, _ *controller.Runtime) error {
	<-ctx.Done()
	s.ended <- "service"
	return nil
}

// In a test, too, services end after the parts that use them.
func TestRunPartsEndsServicesLast(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	ended := make(chan string, 2)
	program := yaretest.RunParts(t, cluster, service{ended}, task(func(ctx context.Context, _ *kube.Client) error {
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // so that a service that does not wait would be first
		ended <- "task"
		return nil
	}))
	program.Stop()
	if first, second := <-ended, <-ended; first != "task" || second != "service" {
		t.Errorf("the %s ended before the %s", first, second)
	}
}

func TestRunPartsThatFail(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	reconcile := controller.New(remind)
	for name, test := range map[string]struct {
		parts []operator.Part
		want  []string
	}{
		"mistake":  {[]operator.Part{controller.New(remind, controller.Concurrency(0))}, []string{"concurrency 0"}},
		"nil":      {[]operator.Part{reconcile, nil}, []string{"the part 2 is nil"}},
		"no parts": {nil, []string{"no parts"}},
		"the same": {[]operator.Part{reconcile, controller.New(remind)}, []string{`named "reminder"`}},
		"error":    {[]operator.Part{task(func(context.Context, *kube.Client) error { return errors.New("broken") })}, []string{"the program failed", "broken"}},
		"advance": {[]operator.Part{task(func(context.Context, *kube.Client) error { return nil })},
			[]string{"advance by 1m0s", "the program has ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record(t, "x", func(t testing.TB) {
				program := yaretest.RunParts(t, cluster, test.parts...)
				if name != "advance" {
					return
				}
				program.Stop()
				program.Stop()
				program.Advance(time.Minute)
			}).requireFailure(t, test.want...)
		})
	}
}

// A program that fails ends at once what its test waits for, and the test shows the error of the program.
func TestFailedProgramEndsWaits(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	missing := errors.New("it does not exist")
	for name, wait := range map[string]func(t testing.TB){
		"eventually": func(t testing.TB) { yaretest.Eventually(t, func() error { return missing }) },
		"within": func(t testing.TB) {
			yaretest.Eventually(yaretest.Within(t, time.Hour), func() error { return missing })
		},
		"consistently": func(t testing.TB) { yaretest.Consistently(t, time.Hour, func() error { return nil }) },
		"a test inside": func(t testing.TB) {
			yaretest.Eventually(&recorder{TB: t, name: t.Name() + "/inner"}, func() error { return missing })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r := record(t, "x", func(t testing.TB) {
				yaretest.RunParts(t, cluster, controller.New(remind), task(func(context.Context, *kube.Client) error {
					time.Sleep(100 * time.Millisecond)
					return errors.New("broken")
				}))
				wait(t)
			})
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("the test ended after %s", took)
			}
			if name == "a test inside" { // its failure is that of another recorder
				return
			}
			if n := len(r.failures); n != 2 || !strings.Contains(r.failures[n-1], "the program has failed: broken") {
				t.Errorf("it failed with %q, want the error of the program twice", r.failures)
			}
		})
	}
	record(t, "x", func(t testing.TB) { // a later test of the same name
		yaretest.Eventually(t, func() error { return nil })
		yaretest.Consistently(t, time.Millisecond, func() error { return nil })
	})
}

// A program of a test has a namespace, which its reconciles know, and in which it watches by InOwnNamespace.
func TestNamespaceOfRunParts(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Reminder](t, cluster)
	own, watched := cluster.Namespace(t), cluster.Namespace(t)
	client := cluster.Client(t)
	yaretest.RunParts(t, cluster.InNamespaces(watched), controller.New(func(ctx context.Context, r *Reminder, c *kube.Client) (controller.Action, error) {
		settings, err := kube.Get[corev1.ConfigMap](ctx, c, controller.Namespace(ctx), "settings")
		if err != nil {
			return controller.Done(), kube.IgnoreNotFound(err)
		}
		r.Status.Count = len(settings.Data["text"])
		return controller.Done(), c.ApplyStatus(ctx, r)
	}, controller.Watches(func(_ context.Context, _ *corev1.ConfigMap, _ *kube.Client) ([]kube.Key, error) {
		return []kube.Key{{Namespace: watched, Name: "r"}}, nil
	}, controller.InOwnNamespace())))
	reminders := kube.Namespaced[Reminder](client, watched)
	if _, err := reminders.Create(t.Context(), reminder(watched, "text")); err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "settings"}, Data: map[string]string{"text": "long"}}
	if _, err := kube.Everywhere[corev1.ConfigMap](client).Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitFor(t, reminders, "r", func(r *Reminder) error {
		if r.Status.Count != len("long") {
			return fmt.Errorf("the count is %d", r.Status.Count)
		}
		return nil
	})
}

// A request that no part declares is not sent, and its error contains what declares the request. The
// clients of the test may do everything.
func TestRunPartsChecksPermissions(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Reminder](t, cluster)
	namespace := cluster.Namespace(t)
	proxy := cluster.Proxy(t)
	write := func(ctx context.Context, r *Reminder, c *kube.Client) error {
		_, err := kube.Apply(ctx, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}})
		return err
	}
	results := make(chan error, 100)
	reconcile := func(ctx context.Context, r *Reminder, c *kube.Client) (controller.Action, error) {
		err := write(ctx, r, c)
		results <- err
		return controller.Done(), controller.Terminal(err)
	}
	first := yaretest.RunParts(t, proxy, controller.New(reconcile))
	made, err := kube.Namespaced[Reminder](cluster.Client(t), namespace).Create(t.Context(), reminder(namespace, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	const line = "add controller.Writes[corev1.ConfigMap](wire.VerbCreate, wire.VerbPatch) to the controller reminder"
	if err := <-results; !kube.IsForbidden(err) || !strings.Contains(err.Error(), line) {
		t.Errorf("the error is %v, want %q in it", err, line)
	}
	first.Stop()
	if writes := proxy.Writes(); len(writes) > 0 {
		t.Errorf("it was sent: %v", writes)
	}
	if err := write(t.Context(), made, cluster.Client(t)); err != nil {
		t.Errorf("the test itself may not write: %v", err)
	}
	for len(results) > 0 {
		<-results
	}
	yaretest.RunParts(t, proxy, controller.New(reconcile, controller.Writes[corev1.ConfigMap](wire.VerbCreate, wire.VerbPatch)))
	if err := <-results; err != nil {
		t.Errorf("it is declared: %v", err)
	}
}

// Hours pass in a moment: each requeue of that time is reconciled, and has seen its time.
func TestAdvance(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Reminder](t, cluster)
	namespace := cluster.Namespace(t)
	reminders := kube.Namespaced[Reminder](cluster.Client(t), namespace)
	made, err := reminders.Create(t.Context(), reminder(namespace, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	program := yaretest.RunParts(t, cluster, controller.New(remind))
	yaretest.WaitFor(t, reminders, "r", hasReminded(1))
	for i, d := range []time.Duration{time.Hour, 3 * time.Hour, 59 * time.Minute} {
		program.Advance(d)
		// What the last reconcile wrote is there, without a wait.
		got, err := reminders.Get(t.Context(), "r")
		if err == nil {
			err = hasReminded([]int{2, 5, 5}[i])(got)
		}
		if err != nil {
			t.Fatalf("after %s: %v", d, err)
		}
		if i == 1 {
			if later := got.Status.Last.Sub(made.CreationTimestamp.Time).Round(time.Hour); later != 4*time.Hour {
				t.Errorf("the last reminder was %s after the first", later)
			}
		}
	}
}

func hasReminded(times int) func(*Reminder) error {
	return func(r *Reminder) error {
		if r.Status.Count != times {
			return fmt.Errorf("it has reminded %d times, want %d", r.Status.Count, times)
		}
		return nil
	}
}

// A retried reconcile is moved as well. A program that does not come to rest is named.
func TestAdvanceThatCannotEnd(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Reminder](t, cluster)
	release := make(chan struct{})
	record(t, "x", func(t testing.TB) {
		namespace := cluster.Namespace(t)
		if _, err := kube.Namespaced[Reminder](cluster.Client(t), namespace).Create(t.Context(), reminder(namespace, "hello")); err != nil {
			t.Fatal(err)
		}
		running := make(chan struct{}, 1)
		program := yaretest.RunParts(yaretest.Within(t, time.Second), cluster, controller.New(func(context.Context, *Reminder, *kube.Client) (controller.Action, error) {
			running <- struct{}{}
			<-release
			return controller.Done(), nil
		}))
		<-running
		t.Cleanup(func() { close(release) })
		program.Advance(time.Minute)
	}).requireFailure(t, "advance by 1m0s", `"controller reminder"`, "did not come to rest")
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// A program can be run with the rights of an account, and its connection can be cut.
func TestTargets(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Reminder](t, cluster)
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	_, err := kube.Namespaced[corev1.ConfigMap](account.Client(t), namespace).List(t.Context())
	if !kube.IsForbidden(err) {
		t.Fatal(err)
	}
	account.Allow(t, namespace, rule("run.example.com", "reminders", "get", "list", "watch"), rule("run.example.com", "reminders/status", "patch"))
	reminders := kube.Namespaced[Reminder](cluster.Client(t), namespace)
	proxy := account.Proxy(t)
	program := yaretest.RunParts(t, proxy, controller.New(remind))
	proxy.CutAfterWrite(1)
	if _, err := reminders.Create(t.Context(), reminder(namespace, "hello")); err != nil {
		t.Fatal(err)
	}
	proxy.WaitForCut(t)
	proxy.Mend()
	yaretest.WaitFor(t, reminders, "r", hasReminded(1))
	program.Advance(time.Hour)
	yaretest.WaitFor(t, reminders, "r", hasReminded(2))
	// The next run of the program goes on at the time at which this one has ended.
	program.Stop()
	yaretest.RunParts(t, account, controller.New(remind)).Advance(time.Hour)
	yaretest.WaitFor(t, reminders, "r", hasReminded(3))
}
