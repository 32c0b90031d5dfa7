package operator_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// shortLease is the duration of a lease that lets a test end soon.
const shortLease = 5 * time.Second

// stage is where replicas of one program run against an API server.
type stage struct {
	t         *testing.T
	cluster   *yaretest.Cluster
	client    *kube.Client
	namespace string
	// duration is the duration of the lease. It is zero for the default.
	duration time.Duration
	// kubeconfig is how replicas without a link reach the server.
	kubeconfig string

	mu       sync.Mutex
	replicas map[string]*replica
	started  int
	// isOver is true when no further replica starts.
	isOver bool
	ending sync.WaitGroup
}

// replica is one process, and so at most one term.
type replica struct {
	*yaretest.Process
	name string
	link *link
}

// newStage returns a stage with the objects that the leader writes.
func newStage(t *testing.T, cluster *yaretest.Cluster, duration time.Duration) *stage {
	t.Helper()
	s := &stage{
		t: t, cluster: cluster, client: cluster.Client(t), namespace: cluster.Namespace(t), duration: duration,
		kubeconfig: cluster.Kubeconfig(), replicas: make(map[string]*replica),
	}
	for i := range operator.LeaderObjects {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: operator.LeaderObject(i)}}
		if _, err := kube.Everywhere[corev1.ConfigMap](s.client).Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start starts a replica behind a link, or without one.
func (s *stage) start(l *link) *replica {
	s.t.Helper()
	s.mu.Lock()
	s.started++
	name := fmt.Sprintf("replica%d", s.started)
	s.mu.Unlock()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	kubeconfig := s.kubeconfig
	if l != nil {
		kubeconfig = l.kubeconfig
	}
	args := []string{"as:leader", name, s.namespace, "run", "--leader-elect"}
	if s.duration > 0 {
		args = append(args, "--lease-duration="+s.duration.String())
	}
	r := &replica{name: name, link: l, Process: yaretest.Run(s.t, kubeconfig, self, args...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[name] = r
	return r
}

// keep starts a replica behind a link of its own, and starts another one whenever it ends, as the
// kubelet does with a container. end ends it.
func (s *stage) keep() {
	s.t.Helper()
	l := newLink(s.t, s.cluster)
	r := s.start(l)
	s.ending.Go(func() {
		for {
			r.Wait(yaretest.Within(s.t, time.Hour))
			s.mu.Lock()
			isOver := s.isOver
			s.mu.Unlock()
			if isOver {
				return
			}
			r = s.start(l)
		}
	})
}

// end ends all replicas.
func (s *stage) end() {
	s.mu.Lock()
	s.isOver = true
	s.mu.Unlock()
	// A replica may start at this moment.
	stop := make(chan struct{})
	go func() { s.ending.Wait(); close(stop) }()
	for {
		s.mu.Lock()
		all := make([]*replica, 0, len(s.replicas))
		for _, r := range s.replicas {
			all = append(all, r)
		}
		s.mu.Unlock()
		for _, r := range all {
			r.Kill()
		}
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// leader waits until another replica than the former one leads, and has written something.
func (s *stage) leader(former string) *replica {
	s.t.Helper()
	var leader *replica
	yaretest.Eventually(s.t, func() error {
		l, err := kube.Get[coordinationv1.Lease](s.t.Context(), s.client, s.namespace, "leader")
		if err != nil {
			return err
		}
		name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
		if name == "" || name == former {
			return fmt.Errorf("the holder is %q", *l.Spec.HolderIdentity)
		}
		o, err := kube.Get[corev1.ConfigMap](s.t.Context(), s.client, s.namespace, operator.LeaderObject(0))
		if err != nil {
			return err
		}
		if o.Data["replica"] != name {
			return fmt.Errorf("%s has written last, and not %s", o.Data["replica"], name)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if leader = s.replicas[name]; leader == nil {
			return fmt.Errorf("the holder is unknown: %q", name)
		}
		return nil
	})
	return leader
}

// waitForWrites waits until a replica has written each object n times, or leads no more.
func (s *stage) waitForWrites(r *replica, n int) {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		for i := range operator.LeaderObjects {
			o, err := kube.Get[corev1.ConfigMap](s.t.Context(), s.client, s.namespace, operator.LeaderObject(i))
			if err != nil {
				return err
			}
			if count, _ := strconv.Atoi(o.Data["n"]); o.Data["replica"] == r.name && count < n {
				return fmt.Errorf("%s has written %s %d times", r.name, o.Name, count)
			}
		}
		return nil
	})
}

// TestNoWriteOfAnOldTerm runs replicas on a real API server. Their networks are slow and broken, and
// their processes are stopped and killed. The audit log of the server shows each write carried out,
// with the resource version that the write led to. No write of a term follows the first write of the
// next one (promise 19).
//
// YARE_LEADER_FAULTS sets how often each fault happens.
func TestNoWriteOfAnOldTerm(t *testing.T) {
	t.Parallel()
	times := 1
	if n, err := strconv.Atoi(os.Getenv("YARE_LEADER_FAULTS")); err == nil {
		times = n
	}
	cluster, log := auditedCluster(t)
	faults := map[string]struct {
		replicas int
		fault    func(t *testing.T, s *stage, r *replica)
	}{
		"killed": {2, func(_ *testing.T, s *stage, r *replica) {
			r.Kill()
			s.leader(r.name)
		}},
		// The process is stopped in the midst of its writes, for longer than its term.
		"stopped": {2, func(t *testing.T, s *stage, r *replica) {
			r.Signal(t, syscall.SIGSTOP)
			s.leader(r.name)
			r.Signal(t, syscall.SIGCONT)
			if status := r.Wait(t); status != 1 {
				t.Errorf("the former leader ended with %d", status)
			}
			r.WaitForLog(t, "the program ends at once, so that nothing of its term goes on")
		}},
		// The network keeps writes, and would deliver them later.
		"black hole": {2, func(t *testing.T, s *stage, r *replica) {
			r.link.setDown(true)
			s.leader(r.name)
			r.link.setDown(false)
			if status := r.Wait(t); status != 1 {
				t.Errorf("the former leader ended with %d", status)
			}
		}},
		// The network keeps the writes of a process that is killed meanwhile.
		"black hole, killed": {2, func(_ *testing.T, s *stage, r *replica) {
			r.link.setDown(true)
			time.Sleep(time.Second)
			r.Kill()
			s.leader(r.name)
			r.link.setDown(false)
		}},
		// Requests take so long that the lease cannot be renewed, but less than the time between the
		// deadline and the take-over.
		"slow": {3, func(_ *testing.T, s *stage, r *replica) {
			r.link.setDelay(1300 * time.Millisecond)
			s.leader(r.name)
			r.link.setDelay(0)
		}},
		// Somebody deletes the Lease by hand, or takes the holder out of it. Before, the standby took the free Lease at once,
		// while the former leader wrote until its next renewal: 29 and 10 writes of the old term were late.
		"lease deleted": {2, func(t *testing.T, s *stage, r *replica) {
			if err := kube.Namespaced[coordinationv1.Lease](s.client, s.namespace).Delete(t.Context(), "leader"); err != nil {
				t.Fatal(err)
			}
			waitForLostLease(t, s, r)
		}},
		"holder emptied": {2, func(t *testing.T, s *stage, r *replica) {
			patch := kube.MergePatch(map[string]any{"spec": map[string]any{"holderIdentity": ""}})
			if _, err := kube.Namespaced[coordinationv1.Lease](s.client, s.namespace).Patch(t.Context(), "leader", patch); err != nil {
				t.Fatal(err)
			}
			waitForLostLease(t, s, r)
		}},
		"slow, stopped": {3, func(t *testing.T, s *stage, r *replica) {
			r.link.setDelay(300 * time.Millisecond)
			time.Sleep(time.Second)
			r.Signal(t, syscall.SIGSTOP)
			s.leader(r.name)
			r.Signal(t, syscall.SIGCONT)
			r.Wait(t)
			r.link.setDelay(0)
		}},
	}
	var namespaces sync.Map
	t.Run("faults", func(t *testing.T) {
		for name, f := range faults {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, cluster, shortLease)
				namespaces.Store(name, s.namespace)
				defer s.end()
				for range f.replicas {
					s.keep()
				}
				for range times {
					leader := s.leader("")
					s.waitForWrites(leader, 20)
					f.fault(t, s, leader)
				}
				s.waitForWrites(s.leader(""), 20)
			})
		}
	})
	writes := auditedWrites(t, log)
	for name := range faults {
		if _, ok := namespaces.Load(name); !ok {
			continue // go test -run has left it out
		}
		namespace, _ := namespaces.Load(name)
		terms, err := checkTerms(writes[namespace.(string)])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(terms) <= times {
			t.Errorf("%s: there were only the terms %v", name, terms)
		}
		t.Logf("%s: %d writes in %d terms", name, len(writes[namespace.(string)]), len(terms))
	}
}

// waitForLostLease waits until a leader has ended, because somebody changed its Lease, and a process leads again. It can be
// the next process of the same Pod.
func waitForLostLease(t *testing.T, s *stage, former *replica) {
	t.Helper()
	if status := former.Wait(t); status != 1 {
		t.Errorf("the former leader ended with %d", status)
	}
	s.leader(former.name)
}

// A webhook of somebody else holds each write up for ten seconds, and then the API server ignores the webhook. Before, no write
// of a leader succeeded, because the term left less than ten seconds for a write. The writes of a leader succeed now, and it
// keeps its lease. The Leases themselves are not held up.
func TestLeaderWritesWhileAWebhookDoesNotAnswer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	s := newStage(t, cluster, 0)
	leader := s.start(nil)
	s.waitForWrites(s.leader(""), 1)
	silent := newSilentServer(t)
	webhook := admissionv1.ValidatingWebhook{
		Name: "silent.example.com", AdmissionReviewVersions: []string{"v1"},
		SideEffects: new(admissionv1.SideEffectClassNone), FailurePolicy: new(admissionv1.Ignore), TimeoutSeconds: new(int32(10)),
		ClientConfig:      admissionv1.WebhookClientConfig{URL: new("https://" + silent.Addr().String())},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "silent." + s.namespace}, Webhooks: []admissionv1.ValidatingWebhook{webhook}}
	if _, err := kube.Everywhere[admissionv1.ValidatingWebhookConfiguration](s.client).Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Delete(context.Background(), configuration) }) // the test has ended
	silent.waitForCalls(t, operator.LeaderObjects)                                 // a write of each object is held up
	before := s.writtenCounts()
	silent.waitForCalls(t, 3*operator.LeaderObjects)
	for name, n := range s.writtenCounts() {
		if n <= before[name] {
			t.Errorf("%s was not written: %d times before the webhook was silent, %d times in all", name, before[name], n)
		}
	}
	if now := s.leader(""); now.name != leader.name {
		t.Errorf("%s leads, and not %s", now.name, leader.name)
	}
	if status := leader.Interrupt(t); status != 0 {
		t.Errorf("the leader ended with %d:\n%s", status, strings.Join(leader.Log(), "\n"))
	}
}

// writtenCounts returns how often each object was written by the process that has written it last.
func (s *stage) writtenCounts() map[string]int {
	s.t.Helper()
	objects, err := kube.Namespaced[corev1.ConfigMap](s.client, s.namespace).List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, o := range objects {
		if n, err := strconv.Atoi(o.Data["n"]); err == nil {
			counts[o.Name] = n
		}
	}
	return counts
}

// TestStalledServer counts the writes of old terms that a server carries out late, because it or its
// etcd was stopped with writes under way. No client can prevent these writes: docs/guide/administration.md
// has the limit. YARE_LEADER_STALLS sets how often each of both is stopped. Without it the test is
// skipped, because it only counts.
func TestStalledServer(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("YARE_LEADER_STALLS"))
	if err != nil {
		t.Skip("YARE_LEADER_STALLS is not set")
	}
	for _, component := range []string{yaretest.APIServer, yaretest.Etcd} {
		cluster, log := auditedCluster(t)
		s := newStage(t, cluster, shortLease)
		for range 2 {
			s.keep()
		}
		for range times {
			s.waitForWrites(s.leader(""), 20)
			cluster.Pause(t, component)
			time.Sleep(shortLease + 2*time.Second) // longer than a term and the wait for its successor
			cluster.Resume(t, component)
		}
		s.waitForWrites(s.leader(""), 20)
		s.end()
		writes := auditedWrites(t, log)[s.namespace]
		terms, err := checkTerms(writes)
		t.Logf("%s, stopped %d times: %d writes in %d terms, late: %v", component, times, len(writes), len(terms), err)
	}
}

// auditedWrite is a write that the server has carried out.
type auditedWrite struct {
	term    string
	version uint64
}

// auditedWrites returns the writes of leaders in an audit log, by namespace.
func auditedWrites(t *testing.T, path string) map[string][]auditedWrite {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	writes := make(map[string][]auditedWrite)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			UserAgent      string
			ObjectRef      struct{ Namespace string }
			ResponseStatus struct{ Code int }
			ResponseObject struct{ Metadata metav1.ObjectMeta }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		term, isLeader := strings.CutPrefix(event.UserAgent, operator.LeaderAgent)
		if !isLeader || event.ResponseStatus.Code != 200 {
			continue
		}
		version, err := strconv.ParseUint(event.ResponseObject.Metadata.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		writes[event.ObjectRef.Namespace] = append(writes[event.ObjectRef.Namespace], auditedWrite{term, version})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return writes
}

// checkTerms returns the terms of writes in the order in which they began. It returns an error if a
// write of a term follows a write of a later one.
func checkTerms(writes []auditedWrite) (terms []string, err error) {
	slices.SortFunc(writes, func(a, b auditedWrite) int { return cmp.Compare(a.version, b.version) })
	late := make(map[string]int)
	for _, w := range writes {
		switch i := slices.Index(terms, w.term); {
		case i < 0:
			terms = append(terms, w.term)
		case i < len(terms)-1:
			late[w.term]++
		}
	}
	if len(late) > 0 {
		err = fmt.Errorf("of the terms %v these had writes after the beginning of a later one: %v", terms, late)
	}
	return terms, err
}

func TestCheckTerms(t *testing.T) {
	t.Parallel()
	if terms, err := checkTerms([]auditedWrite{{"b", 3}, {"a", 1}, {"a", 2}}); err != nil || !slices.Equal(terms, []string{"a", "b"}) {
		t.Error(terms, err)
	}
	if _, err := checkTerms([]auditedWrite{{"a", 1}, {"b", 2}, {"a", 3}}); err == nil {
		t.Error("a late write is no error")
	}
}

// TestHandOver ends leaders in an orderly way. The next one writes at once, and not when the lease
// expires.
//
// YARE_HAND_OVERS sets the number of hand-overs.
func TestHandOver(t *testing.T) {
	t.Parallel()
	times := 3
	if n, err := strconv.Atoi(os.Getenv("YARE_HAND_OVERS")); err == nil {
		times = n
	}
	s := newStage(t, yaretest.Shared(t), 0)
	leader := s.start(nil)
	s.leader("")
	var took []time.Duration
	for range times {
		next := s.start(nil)
		next.WaitForLog(t, "standing by: another replica leads")
		before := lastWrites(t, s)
		began := time.Now()
		leader.Signal(t, syscall.SIGTERM)
		for lastWrites(t, s)[next.name] == before[next.name] {
			if time.Since(began) > 30*time.Second {
				t.Fatal("the next leader does not write")
			}
			time.Sleep(5 * time.Millisecond)
		}
		took = append(took, time.Since(began))
		if status := leader.Wait(t); status != 0 {
			t.Errorf("the leader ended with %d", status)
		}
		leader.WaitForLog(t, "the lease is released")
		leader = next
	}
	if status := leader.Interrupt(t); status != 0 {
		t.Errorf("the last leader ended with %d", status)
	}
	slices.Sort(took)
	// Without the release the next leader waits for 30 s.
	if median := took[len(took)/2]; median > 8*time.Second {
		t.Errorf("the median of %d hand-overs is %s", len(took), median)
	}
	t.Logf("%d hand-overs, from the signal to the first write of the next leader: %s to %s, median %s",
		len(took), took[0], took[len(took)-1], took[len(took)/2])
}

// lastWrites returns how often each replica is the last one that wrote an object.
func lastWrites(t *testing.T, s *stage) map[string]int {
	t.Helper()
	count := make(map[string]int)
	objects, err := kube.Namespaced[corev1.ConfigMap](s.client, s.namespace).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if name := o.Data["replica"]; name != "" {
			count[name]++
		}
	}
	return count
}

// A replica needs no more for its election than what --leader-elect declares. A crash of the leader is
// followed when its lease expires.
func TestLeaderElectionWithItsPermissions(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	s := newStage(t, cluster, shortLease)
	account := cluster.ServiceAccount(t, s.namespace)
	account.Allow(t, s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}})
	for _, access := range operator.LeaseAccess("leader", "") {
		rule := rbacv1.PolicyRule{APIGroups: []string{access.Resource.Group}, Resources: []string{access.Resource.Plural}, ResourceNames: access.Names}
		for _, verb := range access.Verbs {
			rule.Verbs = append(rule.Verbs, string(verb))
		}
		namespace := ""
		if access.OwnNamespace {
			namespace = s.namespace
		}
		account.Allow(t, namespace, rule)
	}
	s.kubeconfig = account.Kubeconfig()
	leader := s.start(nil)
	s.leader("")
	standby := s.start(nil)
	standby.WaitForLog(t, "standing by: another replica leads")
	leader.Kill()
	if next := s.leader(leader.name); next.name != standby.name {
		t.Errorf("%s leads", next.name)
	}
	if status := standby.Interrupt(t); status != 0 {
		t.Errorf("the standby ended with %d", status)
	}
	l, err := kube.Get[coordinationv1.Lease](t.Context(), s.client, s.namespace, "leader")
	if err != nil {
		t.Fatal(err)
	}
	if *l.Spec.HolderIdentity != "" || *l.Spec.LeaseTransitions != 1 {
		t.Errorf("the lease is not released: %+v", l.Spec)
	}
	for _, r := range []*replica{leader, standby} {
		for _, line := range r.Log() {
			if strings.Contains(line, "the account may not") {
				t.Error(line)
			}
		}
	}
}
