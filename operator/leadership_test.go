package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

// electionOn returns the parts of two programs that use the server together, each with its election.
// Their connections lead to the server in memory.
func electionOn(t *testing.T, server wire.Handler, pod string, log *slog.Logger) (*kube.Client, environment) {
	t.Helper()
	return shortElectionOn(t, server, pod, log, lease.Timing{}, func(status int) { t.Errorf("the program ends with %d", status) })
}

// shortElectionOn does what electionOn does, with the times of the election and the function that ends the process.
func shortElectionOn(t *testing.T, server wire.Handler, pod string, log *slog.Logger, timing lease.Timing, exit func(status int)) (*kube.Client, environment) {
	t.Helper()
	fence := newFence(timing, new(kube.Config))
	client := kube.NewClientFromHandler(fence.Handler(server))
	env := environment{log: log, problems: problems.NewReporter(log, "server", "crd", kube.Needs{}, nil), namespace: "gadgets-system", pod: pod}
	var err error
	env.election, err = newElection(candidacy{
		fence: fence, program: "gadgets", leaseName: "gadgets", leaseNamespace: env.namespace, pod: pod, log: log, problems: env.problems,
		kindsHash: kindsHashOf([]wire.Resource{{Plural: "gadgets"}}),
		exit:      exit,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, env
}

// startedParts records which parts of a program have started.
type startedParts struct {
	mu    sync.Mutex
	names []string
}

func (s *startedParts) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
}

func (s *startedParts) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(s.names))), " ")
}

// ownService is a service of an author.
type ownService struct{ Part }

func (s ownService) Needs() (kube.Needs, error) {
	needs, err := s.Part.Needs()
	needs.Service = true
	return needs, err
}

// A standby runs its services and what runs on every replica. It is ready. Everything else waits for
// the election. The end of the leader makes the standby lead.
func TestPartsOfAStandby(t *testing.T) {
	t.Parallel()
	server := fakeserver.New()
	type replica struct {
		started startedParts
		stop    context.CancelFunc
		ended   chan error
		at      fmt.Stringer
		log     sharedBuffer
	}
	start := func(pod string) *replica {
		r := &replica{ended: make(chan error, 1)}
		log := slog.New(slog.NewTextHandler(&r.log, nil))
		client, env := electionOn(t, server, pod, log)
		env.listeners.pages = anywhere(t)
		r.at = env.listeners.pages.Addr()
		task := func(name string) Part {
			return Task(name, func(ctx context.Context, rt *controller.Runtime) error {
				if name == "everywhere" && rt.Elected != nil {
					t.Error("a part on every replica would wait for the election")
				}
				r.started.add(name)
				<-ctx.Done()
				return nil
			})
		}
		parts := []Part{
			task("task"), OnEveryReplica(task("everywhere")), ownService{task("service")}, OnEveryReplica(events.New("example.com/gadgets")),
			part(func(ctx context.Context) error { r.started.add("func"); <-ctx.Done(); return nil }),
			controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) {
				r.started.add("reconcile")
				return controller.Done(), nil
			}),
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.stop = cancel
		go func() {
			err := runParts(ctx, client, env, parts)
			env.election.end()
			r.ended <- err
		}()
		return r
	}
	wait := func(r *replica, started, leader string) {
		t.Helper()
		eventually(t, func() error {
			if code, text := ask(t, r.at, "/readyz"); code != http.StatusOK {
				return errors.New(text)
			}
			if _, text := ask(t, r.at, "/metrics"); !strings.Contains(text, "\nyare_leader "+leader+"\n") {
				return fmt.Errorf("the metrics do not have yare_leader %s", leader)
			}
			if got := r.started.list(); got != started {
				return fmt.Errorf("the parts %s have started, not %s", got, started)
			}
			return nil
		})
	}
	end := func(r *replica) {
		t.Helper()
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
	}
	g := &gadget{}
	g.Namespace, g.Name = "default", "one"
	if _, err := kube.Everywhere[gadget](server.Client()).Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	one := start("pod-1")
	wait(one, "everywhere func reconcile service task", "1")
	two := start("pod-2")
	wait(two, "everywhere service", "0")
	checkText(t, "the log of the standby", two.log.String(), []string{"standing by: another replica leads", "lease=gadgets-system/gadgets", "holder=pod-1_"})
	end(one)
	wait(two, "everywhere func reconcile service task", "1")
	checkText(t, "the log of the new leader", two.log.String(), []string{"this replica leads", "identity=pod-2_"})
	// A standby can end too.
	three := start("pod-3")
	wait(three, "everywhere service", "0")
	end(three)
	end(two)
	l := server.Object("leases", "gadgets-system", "gadgets")
	if l["spec"].(map[string]any)["holderIdentity"] != "" {
		t.Errorf("the lease is not released: %v", l)
	}
}

// blockingWriter is a writer of a log that blocks from a moment on, like a full pipe that nobody reads.
type blockingWriter struct {
	isBlocked atomic.Bool
	unblock   chan struct{}
}

func (w *blockingWriter) Write(p []byte) (int, error) {
	if w.isBlocked.Load() {
		<-w.unblock
	}
	return len(p), nil
}

// The loss of the lease ends the process within two seconds, even if the writer of the log blocks. Health, readiness
// and yare_leader follow at once.
func TestLossOfTheLease(t *testing.T) {
	t.Parallel()
	for name, isBlocked := range map[string]bool{"the log is read": false, "the log blocks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakeserver.New()
			w := &blockingWriter{unblock: make(chan struct{})}
			exits := make(chan int, 1)
			wait := make(chan struct{}) // the process does not end before the test has seen its pages
			timing, err := lease.TimingOf(60 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			client, env := shortElectionOn(t, server, "pod", slog.New(slog.NewTextHandler(w, nil)), timing, func(status int) { exits <- status; <-wait })
			env.listeners.pages = anywhere(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				err := runParts(ctx, client, env, []Part{part(func(ctx context.Context) error { <-ctx.Done(); return nil })})
				env.election.end()
				ended <- err
			}()
			check := func(code int, leader string) error {
				for _, path := range []string{"/healthz", "/readyz"} {
					if got, text := ask(t, env.listeners.pages.Addr(), path); got != code {
						return fmt.Errorf("%s: %d %s", path, got, text)
					}
				}
				if _, text := ask(t, env.listeners.pages.Addr(), "/metrics"); !strings.Contains(text, "\nyare_leader "+leader+"\n") {
					return fmt.Errorf("the metrics do not have yare_leader %s", leader)
				}
				return nil
			}
			eventually(t, func() error { return check(http.StatusOK, "1") })
			w.isBlocked.Store(isBlocked)
			leases := kube.Namespaced[coordinationv1.Lease](server.Client(), env.namespace)
			if _, err := leases.Patch(t.Context(), "gadgets", kube.MergePatch(map[string]any{"spec": map[string]any{"holderIdentity": "somebody-else"}})); err != nil {
				t.Fatal(err)
			}
			lost := time.Now()
			select {
			case status := <-exits:
				if took := time.Since(lost); status != statusFailed || took > 2*time.Second {
					t.Errorf("the process ends after %s with %d", took, status)
				}
			case <-time.After(10 * time.Second):
				t.Error("the process does not end")
			}
			if err := check(http.StatusServiceUnavailable, "0"); err != nil {
				t.Error(err)
			}
			close(wait)
			close(w.unblock)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// An orderly release does not end the process, however long it takes.
func TestReleaseEndsNoProcess(t *testing.T) {
	t.Parallel()
	timing, err := lease.TimingOf(3 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, env := shortElectionOn(t, fakeserver.New(), "pod", slog.New(slog.DiscardHandler), timing, func(int) { t.Error("the release ends the process") })
	env.election.begin(t.Context())
	<-env.election.elector.Elected()
	env.election.stop()
	env.election.running.Wait()
	if err := env.election.elector.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if env.election.isLeading() || env.election.isLost() {
		t.Errorf("after the release: leads %t, lost %t", env.election.isLeading(), env.election.isLost())
	}
	time.Sleep(timing.Duration + time.Second) // beyond the deadline
	env.election.end()
}

// A replica that cannot read the Lease is not ready, and its log has the reason.
func TestStandbyThatMayNotReadTheLease(t *testing.T) {
	t.Parallel()
	server := fakeserver.New()
	server.Before(func(_ context.Context, r *wire.Request) error {
		if r.Resource.Plural == "leases" {
			e := fakeserver.Refusal(r, http.StatusForbidden, "Forbidden")
			e.Answer.Message = `leases.coordination.k8s.io "gadgets" is forbidden: User "x" cannot get resource "leases"`
			return e
		}
		return nil
	})
	var log sharedBuffer
	client, env := electionOn(t, server, "pod", slog.New(slog.NewTextHandler(&log, nil)))
	env.listeners.pages = anywhere(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- runParts(ctx, client, env, []Part{part(func(context.Context) error { t.Error("the part has started"); return nil })})
		env.election.end()
	}()
	eventually(t, func() error {
		code, text := ask(t, env.listeners.pages.Addr(), "/readyz")
		if code != http.StatusServiceUnavailable || text != "the lease gadgets-system/gadgets has not been read\n" {
			return fmt.Errorf("%d %s", code, text)
		}
		if got := log.String(); !strings.Contains(got, "the account may not get leases.coordination.k8s.io") {
			return fmt.Errorf("the log: %s", got)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A leader warns of another installation of its program that watches the same objects.
func TestOtherInstallations(t *testing.T) {
	t.Parallel()
	server := fakeserver.New()
	holder, now := "other_1", time.Now()
	for namespace, renewed := range map[string]time.Time{"elsewhere": now, "abandoned": now.Add(-time.Hour)} {
		l := new(coordinationv1.Lease)
		l.Namespace, l.Name = namespace, "gadgets"
		l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, lease.MicroTime(renewed)
		if _, err := kube.Everywhere[coordinationv1.Lease](server.Client()).Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	var log sharedBuffer
	_, env := electionOn(t, server, "pod", slog.New(slog.NewTextHandler(&log, nil)))
	env.election.begin(t.Context())
	eventually(t, func() error {
		if !strings.Contains(log.String(), "another installation of this program is active") {
			return errors.New("there is no warning")
		}
		return nil
	})
	env.election.end()
	checkText(t, "the log", log.String(), []string{"lease=elsewhere/gadgets", "holder=other_1", "--watch-namespace"})
	if strings.Contains(log.String(), "abandoned") {
		t.Errorf("the log: %s", log.String())
	}
}

// A leader writes its kinds into its Lease, and warns of a Lease of another name with the same kinds. It needs no right
// for that purpose: without the right there is no warning.
func TestLeaseOfAnotherNameForTheSameKinds(t *testing.T) {
	t.Parallel()
	for name, mayList := range map[string]bool{"may list Leases": true, "may not list Leases": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakeserver.New()
			holder := "other_1"
			for name, kinds := range map[string]string{"copied": kindsHashOf([]wire.Resource{{Plural: "gadgets"}}), "stranger": kindsHashOf([]wire.Resource{{Plural: "widgets"}})} {
				l := new(coordinationv1.Lease)
				l.Namespace, l.Name, l.Labels = "gadgets-system", name, map[string]string{"leases.yare.dev/kinds": kinds}
				l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, lease.MicroTime(time.Now())
				if _, err := kube.Everywhere[coordinationv1.Lease](server.Client()).Create(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			refused := make(chan struct{}, 1)
			server.Before(func(_ context.Context, r *wire.Request) error {
				if r.Verb == wire.VerbList && r.Query.Get("labelSelector") != "" && !mayList {
					refused <- struct{}{}
					return fakeserver.Refusal(r, http.StatusForbidden, "Forbidden")
				}
				return nil
			})
			var log sharedBuffer
			_, env := electionOn(t, server, "pod", slog.New(slog.NewTextHandler(&log, nil)))
			env.election.begin(t.Context())
			if mayList {
				eventually(t, func() error {
					if !strings.Contains(log.String(), "lease=gadgets-system/copied") {
						return errors.New("there is no warning")
					}
					return nil
				})
			} else {
				<-refused
			}
			env.election.end()
			if text := log.String(); strings.Contains(text, "level=WARN") != mayList || strings.Contains(text, "stranger") {
				t.Errorf("the log: %s", text)
			}
			labels := server.Object("leases", "gadgets-system", "gadgets")["metadata"].(map[string]any)["labels"].(map[string]any)
			if labels["leases.yare.dev/kinds"] != kindsHashOf([]wire.Resource{{Plural: "gadgets"}}) {
				t.Errorf("the labels of the Lease are %v", labels)
			}
		})
	}
}

// The hash depends on the kinds alone, whatever their order, number and versions.
func TestHashOfKinds(t *testing.T) {
	t.Parallel()
	a, b := wire.Resource{Plural: "a"}, wire.Resource{Plural: "b"}
	newer := a
	newer.Version = "v2"
	if one, two := kindsHashOf([]wire.Resource{a, b}), kindsHashOf([]wire.Resource{b, newer, a}); one != two || len(one) != 20 || one == kindsHashOf([]wire.Resource{a}) {
		t.Errorf("the hashes are %s and %s", one, two)
	}
	if hash := kindsHashOf(nil); hash != "" {
		t.Errorf("without kinds: %s", hash)
	}
}

func TestLeaderElectionIsOffByDefault(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{"": false, "--leader-elect": true, "run --leader-elect=false": false} {
		line, err := newCommandLine("gadgets", nil)
		if err == nil {
			err = line.parse(strings.Fields(args))
		}
		if err != nil || line.election.isOn != want {
			t.Errorf("%s: %t, %v", args, line.election.isOn, err)
		}
	}
}

// The times of the election follow from one flag, whose errors name its limits.
func TestLeaseDuration(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]lease.Timing{
		"run --leader-elect":                       {},
		"run --leader-elect --lease-duration 15s":  {Duration: 15 * time.Second, Deadline: 10 * time.Second, Period: 2 * time.Second},
		"--lease-duration=5m --leader-elect":       {Duration: 5 * time.Minute, Deadline: 200 * time.Second, Period: 40 * time.Second},
		"manifests --image i --lease-duration=30s": {Duration: 30 * time.Second, Deadline: 20 * time.Second, Period: 4 * time.Second},
	} {
		line, err := newCommandLine("gadgets", nil)
		if err == nil {
			err = line.parse(strings.Fields(args))
		}
		if err != nil || line.election.timing != want {
			t.Errorf("%s: %+v, %v", args, line.election.timing, err)
		}
	}
	for args, want := range map[string]string{
		"--leader-elect --lease-duration 2s":     "the lease cannot last for 2s: give a whole number of seconds, from 3s to 5m0s",
		"--leader-elect --lease-duration 3500ms": "from 3s to 5m0s",
		"--leader-elect --lease-duration 1h":     "from 3s to 5m0s",
		"--leader-elect --lease-duration 15":     "missing unit",
		"--lease-duration 15s":                   "are for --leader-elect: give it too",
		"--lease-name a":                         "are for --leader-elect: give it too",
		"--leader-elect --lease-name A":          "-lease-name",
		"--leader-elect --lease-namespace a.b":   "-lease-namespace",
	} {
		status, _, stderr := call(strings.Fields(args), Watcher[gadget](idle))
		if status != statusUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", args, status, stderr)
		}
	}
}

// The permissions of the election are narrowed by the name of the Lease, as far as RBAC can do so.
func TestLeaseAccess(t *testing.T) {
	t.Parallel()
	access := leaseAccess("gadgets", "")
	if len(access) != 3 {
		t.Fatalf("%+v", access)
	}
	for _, a := range access {
		isNarrow := slices.Equal(a.Names, []string{"gadgets"})
		if a.Resource.String() != "leases.coordination.k8s.io" || isNarrow == slices.Contains(a.Verbs, wire.VerbCreate) {
			t.Errorf("%+v", a)
		}
		if a.OwnNamespace == (len(a.Verbs) == 1 && a.Verbs[0] == wire.VerbList) {
			t.Errorf("%+v", a)
		}
	}
}

// Another Lease needs the permissions on this Lease alone, in its namespace.
func TestAccessToAnotherLease(t *testing.T) {
	t.Parallel()
	_, stdout, stderr := call(strings.Fields("permissions --leader-elect --lease-name old.example.com --lease-namespace kube-system"), Task("nothing", idleTask))
	objects, order := documents(t, stdout)
	if want := []string{"ClusterRole gadgets.gadgets-system", "Role gadgets.gadgets-system"}; !slices.Equal(order, want) {
		t.Fatalf("the roles are %q; %s", order, stderr)
	}
	if namespace := objects["Role gadgets.gadgets-system"]["metadata"].(map[string]any)["namespace"]; namespace != "kube-system" {
		t.Errorf("the Role is in %s", namespace)
	}
	if n := strings.Count(stdout, "- old.example.com\n"); n != 2 {
		t.Errorf("%d rules name the Lease:\n%s", n, stdout)
	}
}

// runLeader runs the program of the tests with real processes. Its first arguments are the name of the
// replica and the namespace of its objects. While it leads, it writes these objects again and again.
func runLeader() {
	replica, namespace := os.Args[1], os.Args[2]
	os.Args = append(os.Args[:1], os.Args[3:]...)
	os.Setenv("POD_NAME", replica)
	os.Setenv("POD_NAMESPACE", namespace)
	p := invocation{file: "leader", stdout: os.Stdout, stderr: os.Stderr, exit: os.Exit}
	p.Config = func(config *kube.Config) error {
		config.UserAgent = leaderAgent + replica
		return nil
	}
	p.Parts = func() ([]Part, error) {
		var parts []Part
		for i := range leaderObjects {
			parts = append(parts, Task("write "+leaderObject(i), func(ctx context.Context, rt *controller.Runtime) error {
				return writeForever(ctx, rt.Client, namespace, leaderObject(i), replica)
			}, controller.Writes[corev1.ConfigMap](wire.VerbPatch)))
		}
		return parts, nil
	}
	ctx, stop := untilSignal(os.Stderr)
	status := p.execute(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

const (
	// leaderAgent and the name of the replica are the user agent of a replica.
	leaderAgent = "leader/"
	// leaderObjects is the number of objects that a leader writes concurrently.
	leaderObjects = 4
	// writePause is the pause between two writes of an object. Without one, the server would be too
	// busy to renew leases.
	writePause = 20 * time.Millisecond
)

// leaderObject returns the name of the ConfigMap i that a leader writes.
func leaderObject(i int) string { return fmt.Sprintf("written-%d", i) }

// writeForever writes one object until ctx ends. Errors of the server are a part of the test.
func writeForever(ctx context.Context, c *kube.Client, namespace, name, replica string) error {
	maps := kube.Namespaced[corev1.ConfigMap](c, namespace)
	for n := 1; ctx.Err() == nil; n++ {
		_, err := maps.Patch(ctx, name, kube.MergePatch(map[string]any{
			"data": map[string]string{"replica": replica, "n": fmt.Sprint(n)},
		}))
		if kube.IsForbidden(err) {
			return err
		}
		time.Sleep(writePause)
	}
	return nil
}

// The command permissions prints what --leader-elect needs.
func TestPermissionsOfTheLeaderElection(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{"permissions": false, "permissions --leader-elect": true} {
		status, stdout, stderr := call(strings.Fields(args), Watcher[gadget](idle))
		if has := strings.Contains(stdout, "leases"); status != 0 || has != want {
			t.Errorf("%s: status %d, %s\n%s", args, status, stderr, stdout)
		}
	}
}
