package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netresearch/go-cron"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/examples/internal/operatortest"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// schedules is a test of the operator in a namespace of its own.
type schedules struct {
	*testing.T
	cluster   *yaretest.Cluster
	run       *yaretest.Program
	crons     kube.API[CronJob]
	jobs      kube.API[batchv1.Job]
	namespace string
}

func newSchedules(t *testing.T) *schedules {
	t.Parallel()
	cluster := yaretest.Shared(t)
	define(t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	s := &schedules{T: t, cluster: cluster, namespace: namespace, crons: kube.Namespaced[CronJob](client, namespace), jobs: kube.Namespaced[batchv1.Job](client, namespace)}
	s.start(cluster, parts()...)
	return s
}

// define defines both versions of CronJobs.
func define(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	v1, err := kube.TypeOf[CronJob]()
	if err != nil {
		t.Fatal(err)
	}
	v2, err := kube.TypeOf[CronJobV2]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, v1, v2)
}

// start starts the operator with some of its parts.
func (s *schedules) start(through yaretest.Target, parts ...operator.Part) {
	s.run = yaretest.RunParts(s, through, parts...)
}

// hourly returns the spec of a CronJob whose Pods are simulated by annotations. The test does not last
// until the next run, unless it moves the time.
func hourly(policy ConcurrencyPolicy, annotations map[string]string) CronJobSpec {
	return CronJobSpec{
		Schedule: fmt.Sprintf("%d * * * *", time.Now().Add(30*time.Minute).Minute()),
		Settings: Settings{ConcurrencyPolicy: policy, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "busybox"}}},
			},
		}}},
	}
}

var hanging = yaretest.Simulation{CompleteAfter: time.Hour}.Annotations()

// create creates a CronJob, and waits until it was reconciled.
func (s *schedules) create(spec CronJobSpec) {
	s.Helper()
	_, err := s.crons.Create(s.Context(), &CronJob{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: spec})
	if err != nil {
		s.Fatal(err)
	}
	yaretest.WaitForCondition(s, s.crons, "work", "Scheduled")
}

// advance moves the time past the next run.
func (s *schedules) advance() {
	s.Helper()
	s.run.Advance(time.Hour)
}

// waitForJobs waits until the Jobs are in these states, the oldest first, and the status shows the
// active ones and the latest.
func (s *schedules) waitForJobs(states ...batchv1.JobConditionType) []*batchv1.Job {
	s.Helper()
	var jobs []*batchv1.Job
	yaretest.WaitFor(s, s.crons, "work", func(c *CronJob) (err error) {
		if jobs, err = s.jobs.List(s.Context()); err != nil {
			return err
		}
		slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
		var found []batchv1.JobConditionType
		for _, j := range jobs {
			found = append(found, stateOf(j))
		}
		if !slices.Equal(found, states) {
			return fmt.Errorf("the Jobs are %q, want %q", found, states)
		}
		if want := len(jobsIn(active, jobs)); len(c.Status.Active) != want {
			return fmt.Errorf("the status shows the active Jobs %v, want %d", c.Status.Active, want)
		}
		if len(jobs) > 0 && (c.Status.LastScheduleTime == nil || c.Status.LastScheduleTime.UTC().Format(time.RFC3339) != jobs[len(jobs)-1].Annotations[scheduledAt]) {
			return fmt.Errorf("the last run was at %v, want %s", c.Status.LastScheduleTime, jobs[len(jobs)-1].Annotations[scheduledAt])
		}
		return nil
	})
	return jobs
}

func TestRunsAndHistory(t *testing.T) {
	for _, each := range []struct {
		name        string
		annotations map[string]string
		state       batchv1.JobConditionType
		keep        int
	}{
		{"succeed", nil, batchv1.JobComplete, 3},
		{"fail", yaretest.Simulation{Fails: true}.Annotations(), batchv1.JobFailed, 1},
	} {
		t.Run(each.name, func(t *testing.T) {
			s := newSchedules(t)
			s.create(hourly(Allow, each.annotations))
			s.waitForJobs()
			for i := range each.keep + 2 {
				s.advance()
				s.waitForJobs(slices.Repeat([]batchv1.JobConditionType{each.state}, min(i+1, each.keep))...)
			}
		})
	}
}

func TestConcurrencyPolicy(t *testing.T) {
	for policy, want := range map[ConcurrencyPolicy][]batchv1.JobConditionType{
		Allow: {active, active}, Forbid: {active}, Replace: {active},
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSchedules(t)
			s.create(hourly(policy, hanging))
			s.advance()
			first := s.waitForJobs(active)[0]
			s.advance()
			last := s.waitForJobs(want...)[len(want)-1]
			if isNew := last.UID != first.UID; isNew != (policy != Forbid) {
				t.Errorf("the last Job is %s, and the first was %s", last.Name, first.Name)
			}
		})
	}
}

func TestSuspendAndDeadline(t *testing.T) {
	for name, deadline := range map[string]*int64{"no deadline": nil, "missed": new(int64(60))} {
		t.Run(name, func(t *testing.T) {
			s := newSchedules(t)
			spec := hourly(Allow, hanging)
			spec.Suspend, spec.StartingDeadlineSeconds = true, deadline
			_, err := s.crons.Create(t.Context(), &CronJob{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			yaretest.WaitForReason(t, s.crons, "work", "Scheduled", "Suspended")
			s.run.Advance(time.Hour)
			s.waitForJobs()
			if _, err := s.crons.Patch(t.Context(), "work", kube.MergePatch(map[string]any{"spec": map[string]any{"suspend": false}})); err != nil {
				t.Fatal(err)
			}
			yaretest.WaitForReason(t, s.crons, "work", "Scheduled", "Valid")
			if deadline != nil { // a missed run does not start, and the next one does
				s.waitForJobs()
				s.run.Advance(time.Hour)
			}
			s.waitForJobs(active)
		})
	}
}

// TestPermissions lets Jobs start, finish and be deleted, while the operator is restarted and its
// connection breaks. Then a process publishes the webhooks, and makes again what somebody has deleted. The operator has
// exactly the permissions that it declares.
func TestPermissions(t *testing.T) {
	operatortest.SkipUnlessAllPermissions(t)
	begin := func(t *testing.T, run *yaretest.PermissionRun) *schedules {
		client := run.Cluster.Client(t)
		s := &schedules{T: t, crons: kube.Namespaced[CronJob](client, run.Namespace), jobs: kube.Namespaced[batchv1.Job](client, run.Namespace)}
		s.start(run.Proxy, parts()[0]) // startWebhooks starts the others
		s.create(hourly(Allow, nil))
		return s
	}
	use := func(t *testing.T, run *yaretest.PermissionRun) {
		s, proxy := begin(t, run), run.Proxy
		for i := range 5 {
			s.advance()
			s.waitForJobs(slices.Repeat([]batchv1.JobConditionType{batchv1.JobComplete}, min(i+1, 3))...)
		}
		for n := range 2 { // the start of a Job, and its record
			proxy.CutAfterWrite(n + 1)
			s.advance()
			proxy.WaitForCut(t)
			proxy.Mend()
			s.advance()
			s.waitForJobs(slices.Repeat([]batchv1.JobConditionType{batchv1.JobComplete}, 3)...)
		}
		s.run.Stop()
		s.start(proxy, parts()[0])
		s.advance()
		s.waitForJobs(slices.Repeat([]batchv1.JobConditionType{batchv1.JobComplete}, 3)...)
		s.run.Stop()

		process := startWebhooks(t, run)
		uid := func() (string, error) {
			out, stderr, err := run.Cluster.TryKubectl(t, "", "get", "secret", "cronjob-webhooks", "--namespace", run.Namespace, "-o", "jsonpath={.metadata.uid}")
			if err != nil {
				return "", fmt.Errorf("%w: %s", err, stderr)
			}
			return out, nil
		}
		var first string
		yaretest.Eventually(t, func() (err error) { first, err = uid(); return err })
		run.Cluster.Kubectl(t, "", "delete", "secret", "cronjob-webhooks", "--namespace", run.Namespace, "--wait=false")
		yaretest.Eventually(t, func() error { // the process makes it again
			second, err := uid()
			if err == nil && second == first {
				err = errors.New("it is not deleted yet")
			}
			return err
		})
		process.Interrupt(t)
	}
	operatortest.ProvePermissions(t, use, func(t *testing.T, run *yaretest.PermissionRun) {
		begin(t, run).advance()
		startWebhooks(t, run)
	}, "--webhooks=127.0.0.1:0")
}

// startWebhooks starts a process with the webhooks. Their configurations are there already, without entries, as the command
// manifests prints them. startWebhooks returns when they have entries, or a request was refused. From then on the API server
// refuses CronJobs, because there is no Service.
func startWebhooks(t *testing.T, run *yaretest.PermissionRun) *yaretest.Process {
	t.Helper()
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		text := fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: %s\nmetadata: {name: cronjob.%s}\n", kind, run.Namespace)
		run.Cluster.Kubectl(t, text, "create", "-f", "-")
	}
	process := yaretest.Run(t, run.Proxy.Kubeconfig(), run.Program, run.Args...)
	yaretest.Eventually(t, func() error {
		entries := run.Cluster.Kubectl(t, "", "get", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "-o",
			fmt.Sprintf(`jsonpath={.items[?(@.metadata.name=="cronjob.%s")].webhooks[*].name}`, run.Namespace))
		isRefused := slices.ContainsFunc(run.Proxy.Requests(), func(r yaretest.Request) bool { return r.Code == http.StatusForbidden })
		if len(strings.Fields(entries)) != 2 && !isRefused {
			return fmt.Errorf("the entries are %q", entries)
		}
		return nil
	})
	return process
}

func TestInvalid(t *testing.T) {
	s := newSchedules(t)
	for _, each := range []struct{ name, schedule, field string }{
		{"work", "at noon", "spec.schedule"},
		{"work", "* * * *", "spec.schedule"},
		{strings.Repeat("a", 53), "@hourly", "metadata.name is longer than 52 characters"},
	} {
		spec := hourly(Allow, nil)
		spec.Schedule = each.schedule
		_, err := s.crons.Create(t.Context(), &CronJob{ObjectMeta: metav1.ObjectMeta{Name: each.name}, Spec: spec})
		if !kube.IsInvalid(err) || !strings.Contains(err.Error(), each.field) {
			t.Errorf("%q, %q: %v, want an error about %s", each.name, each.schedule, err, each.field)
		}
	}
	for i, schedule := range []string{"61 * * * *", "0 0 30 2 *"} {
		spec := hourly(Allow, nil)
		spec.Schedule = schedule
		c := &CronJob{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("invalid-", i)}, Spec: spec}
		_, err := s.crons.Create(t.Context(), c)
		if e, ok := kube.AsError(err); !kube.IsInvalid(err) || !ok || len(e.Answer.Details.Causes) != 1 || e.Answer.Details.Causes[0].Field != "spec.schedule" {
			t.Errorf("%q: %v, want an error about spec.schedule", schedule, err)
		}
		t.Logf("refused: %v", err)
		// Such an object may be older than the webhook.
		s.run.Stop()
		if _, err := s.crons.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s.start(s.cluster, parts()...)
		yaretest.WaitForReason(t, s.crons, c.Name, "Scheduled", "InvalidSchedule")
		if _, err := s.crons.Patch(t.Context(), c.Name, kube.MergePatch(map[string]any{"spec": map[string]any{"suspend": true}})); err != nil {
			t.Errorf("a change of another field of %q: %v", schedule, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := newSchedules(t)
	spec := hourly(Allow, nil)
	pod := &spec.JobTemplate.Spec.Template.Spec
	pod.RestartPolicy = ""
	s.create(spec)
	c, err := s.crons.Get(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy; got != corev1.RestartPolicyOnFailure {
		t.Errorf("the restart policy is %q", got)
	}
}

// A schedule with a day of the month and a weekday means both, as in Kubernetes: here each 13th and
// each Friday.
func TestDayOfTheMonthOrWeekday(t *testing.T) {
	t.Parallel()
	schedule, err := cron.MustNewParser(scheduleFields).Parse("30 9 13 * FRI")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 5, 0, 0, 0, 0, time.UTC) // a Saturday
	for _, day := range []int{11, 13, 18} {
		at = schedule.Next(at)
		if want := time.Date(2026, 12, day, 9, 30, 0, 0, time.UTC); !at.Equal(want) {
			t.Errorf("the next run is at %s, want %s", at, want)
		}
	}
}

// TestKillBeforeTheRunIsRecorded kills the operator between the creation of a Job and its record in
// the status. A run is due when the operator starts.
func TestKillBeforeTheRunIsRecorded(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	define(t, cluster)
	namespace, client, binary := cluster.Namespace(t), cluster.Client(t), yaretest.Build(t, ".")
	crons, jobs := kube.Namespaced[CronJob](client, namespace), kube.Namespaced[batchv1.Job](client, namespace)
	spec := hourly(Forbid, hanging)
	spec.Schedule = "@every 1s"
	created, err := crons.Create(t.Context(), &CronJob{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		if time.Since(created.CreationTimestamp.Time) < 2*time.Second {
			return errors.New("no run is due yet")
		}
		return nil
	})
	proxy := cluster.Proxy(t)
	proxy.CutAfterWrite(1)
	first := yaretest.Run(t, proxy.Kubeconfig(), binary, "--webhooks=", "--watch-namespace", namespace)
	proxy.WaitForCut(t)
	first.Kill()
	proxy.Mend()
	made, err := jobs.List(t.Context())
	if err != nil || len(made) != 1 {
		t.Fatalf("the operator was killed after it had made %d Jobs: %v", len(made), err)
	}
	if c, err := crons.Get(t.Context(), "work"); err != nil || len(c.Status.Active) != 0 {
		t.Fatalf("the run is recorded already: %+v, %v", c.Status, err)
	}
	yaretest.Run(t, proxy.Kubeconfig(), binary, "--webhooks=", "--watch-namespace", namespace)
	yaretest.WaitFor(t, crons, "work", func(c *CronJob) error {
		if len(c.Status.Active) != 1 || c.Status.Active[0].UID != made[0].UID ||
			c.Status.LastScheduleTime.UTC().Format(time.RFC3339) != made[0].Annotations[scheduledAt] {
			return fmt.Errorf("the status is %+v, want the Job %s of %s", c.Status, made[0].Name, made[0].Annotations[scheduledAt])
		}
		return nil
	})
	if made, err := jobs.List(t.Context()); err != nil || len(made) != 1 {
		t.Errorf("there are %d Jobs after the restart, want 1: %v", len(made), err)
	}
}

// A schedule that v2 cannot express survives the way there and back, and a write in v2.
func TestVersions(t *testing.T) {
	s := newSchedules(t)
	v2 := kube.Namespaced[CronJobV2](s.cluster.Client(t), s.namespace)
	for schedule, want := range map[string]Schedule{
		"@hourly": {}, "@every 2h": {}, "*/5 1 * * 0": {Minute: "*/5", Hour: "1", DayOfMonth: "*", Month: "*", DayOfWeek: "0"},
	} {
		spec := hourly(Allow, nil)
		spec.Schedule = schedule
		c, err := s.crons.Create(t.Context(), &CronJob{ObjectMeta: metav1.ObjectMeta{GenerateName: "work-"}, Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := v2.Get(t.Context(), c.Name)
		if err != nil || seen.Spec.Schedule != want {
			t.Errorf("%q is %+v in v2, want %+v, %v", schedule, seen.Spec.Schedule, want, err)
		}
		t.Logf("written in v1 as %q, read in v2 as %+v", schedule, seen.Spec.Schedule)
		if _, err := v2.Modify(t.Context(), c.Name, func(c *CronJobV2) error { c.Spec.Suspend = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if c, err = s.crons.Get(t.Context(), c.Name); err != nil || c.Spec.Schedule != schedule || !c.Spec.Suspend || len(c.Annotations) != 0 {
			t.Errorf("%q came back as %q with the annotations %v, %v", schedule, c.Spec.Schedule, c.Annotations, err)
		}
		changed, err := v2.Modify(t.Context(), c.Name, func(c *CronJobV2) error { c.Spec.Schedule = Schedule{Hour: "3"}; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if c, err = s.crons.Get(t.Context(), c.Name); err != nil || c.Spec.Schedule != "* 3 * * *" || changed.Spec.Schedule.Hour != "3" {
			t.Errorf("after a change in v2, %q is %q in v1 and %+v in v2, %v", schedule, c.Spec.Schedule, changed.Spec.Schedule, err)
		}
		t.Logf("written in v2 as %+v, read in v1 as %q", changed.Spec.Schedule, c.Spec.Schedule)
	}
	_, err := v2.Create(t.Context(), &CronJobV2{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}, Spec: CronJobSpecV2{Schedule: Schedule{Minute: "61"}, Settings: hourly(Allow, nil).Settings}})
	if !kube.IsInvalid(err) || !strings.Contains(err.Error(), "spec.schedule") {
		t.Errorf("a wrong schedule in v2: %v", err)
	}
}

// No value is lost by the functions that convert CronJobs.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	define(t, cluster)
	yaretest.RoundTrips(t, cluster, parts()...)
}
