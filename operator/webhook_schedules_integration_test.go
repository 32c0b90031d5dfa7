package operator_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// figure returns how often a schedule happens: small, or full if YARE_WEBHOOK_FULL is set.
func figure(small, full int) int {
	if os.Getenv("YARE_WEBHOOK_FULL") != "" {
		return full
	}
	return small
}

// The schedules of failures of a whole program with webhooks, against a real API server. docs/reliability.md has the table
// of all schedules.
func TestWebhookSchedules(t *testing.T) {
	t.Parallel()
	cluster, network := newScheduleServer(t)
	for _, each := range []struct {
		name string
		run  func(*testing.T, *yaretest.Cluster, *serviceNetwork)
	}{
		{"rotations", rotationsUnderLoad},
		{"start without certificates", startWithoutCertificates},
		{"rolling restarts", rollingRestarts},
		{"crash and loss of the lease", crashAndLossOfTheLease},
		{"upgrade and rollback", upgradeAndRollback},
		{"stricter release", stricterRelease},
		{"validator that fails", validatorThatFails},
		{"uninstall and second installation", uninstallAndSecondInstallation},
		{"down while Pods are created", downWhilePodsAreCreated},
	} {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			each.run(t, cluster, network)
		})
	}
}

// Rows 2 to 5: the certificates rotate again and again while users write, and replicas are replaced. After each rotation the Secret
// is restored to before the rotation, and then deleted or emptied. A copy of the configuration keeps the bundle of before, as an
// API server that lags does. No call fails, and the certificates of the program are published again.
func rotationsUnderLoad(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Pumps](t, cluster, network, "pumps-rotations")
	s.apply("second")
	pods := []*pod{s.start("second"), s.start("second")}
	yaretest.Eventually(t, func() error { return errors.Join(s.checkRefused(6), s.checkEntries(1, 1)) })
	users := startLoad(t, 8, func(ctx context.Context, caller, n int) error {
		if n%2 == 0 {
			return s.checkRefused(6)
		}
		_, err := s.pumps.Create(ctx, s.newPump(fmt.Sprintf("pump-%d-%d", caller, n), 5), kube.DryRun())
		return err
	})
	for round := range figure(3, 30) {
		s.waitForNextSecond()
		s.keepBundle()
		before := s.secretData()
		// An authority that is due for a successor. The program signs it with the authority of before, and makes the successor.
		aged := s.agedSecrets(rotationAge)[0]
		s.setSecretData(aged)
		rotated := s.waitForRotation(aged)
		t.Logf("rotation %d: %d authorities, %d calls so far", round+1, authoritiesIn(rotated["ca.crt"]), users.count())
		s.setSecretData(before)
		s.waitForSecret("the Secret of before the rotation", rotated)
		if round%2 == 0 {
			if err := kube.Namespaced[corev1.Secret](s.client, s.namespace).Delete(t.Context(), s.secretName()); err != nil {
				t.Fatal(err)
			}
			s.waitForSecret("the deletion of the Secret", rotated)
			pods = s.replace("second", pods...)
			continue
		}
		s.setSecretData(nil)
		s.waitForSecret("an empty Secret", rotated)
	}
	users.waitForCalls(20, time.Now())
	users.mustNotFail()
	s.answers.mustBeNone(t)
	s.waitForEnds()
}

// waitForNextSecond waits until another second has begun. Real rotations are months apart. Certificates have whole seconds, so that
// of the CAs of one second a full bundle may drop any.
func (s *pumpSite[G]) waitForNextSecond() {
	s.t.Helper()
	began := time.Now().Unix()
	yaretest.Eventually(s.t, func() error {
		if time.Now().Unix() == began {
			return errors.New("the second has not ended")
		}
		return nil
	})
}

// keepBundle makes a copy of the configuration of validators, which nobody keeps up to date. It replaces the last copy.
func (s *pumpSite[G]) keepBundle() {
	s.t.Helper()
	live, err := kube.Get[admissionv1.ValidatingWebhookConfiguration](s.t.Context(), s.client, "", "pumps."+s.namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	kept := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kept." + s.namespace}, Webhooks: live.Webhooks}
	if _, err := kube.Apply(s.t.Context(), s.client.WithFieldManager("test"), kept); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.client.Delete(context.Background(), kept) }) // an earlier copy is the same object
}

// waitForRotation waits until the certificates of a Secret have a successor that is published, and returns the data of the Secret.
func (s *pumpSite[G]) waitForRotation(before map[string][]byte) (rotated map[string][]byte) {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		rotated = s.secretData()
		if len(rotated["ca.crt"]) == 0 || bytes.Equal(rotated["ca.key"], before["ca.key"]) {
			return errors.New("there was no rotation")
		}
		c, err := kube.Get[admissionv1.ValidatingWebhookConfiguration](s.t.Context(), s.client, "", "pumps."+s.namespace)
		if err != nil {
			return err
		}
		if len(c.Webhooks) != 1 || !slices.Equal(sortedAuthorities(c.Webhooks[0].ClientConfig.CABundle), sortedAuthorities(rotated["ca.crt"])) {
			return errors.New("the bundle is not published")
		}
		return nil
	})
	return rotated
}

// sortedAuthorities returns the CAs of a bundle. The program leaves a published bundle alone if only the order of its CAs differs.
func sortedAuthorities(bundle []byte) []string {
	all := strings.SplitAfter(string(bundle), "-----END CERTIFICATE-----\n")
	slices.Sort(all)
	return all
}

// waitForSecret waits until the Secret has the key of a rotation again, for ten seconds at most.
func (s *pumpSite[G]) waitForSecret(after string, rotated map[string][]byte) {
	s.t.Helper()
	yaretest.Eventually(yaretest.Within(s.t, 10*time.Second), func() error {
		secret, err := kube.Get[corev1.Secret](s.t.Context(), s.client, s.namespace, s.secretName())
		if err == nil && !bytes.Equal(secret.Data["ca.key"], rotated["ca.key"]) {
			err = errors.New("the Secret has another key")
		}
		if err != nil {
			return fmt.Errorf("after %s: %w", after, err)
		}
		return nil
	})
}

// Rows 1 and 8: three replicas start at once, while the Secret has no data, or certificates that expired long ago. They make one
// authority, under which all answer. The authorities of the rounds before stay in the bundle, because they are published.
func startWithoutCertificates(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Pumps](t, cluster, network, "pumps-start")
	s.apply("second")
	expired := s.agedSecrets(730 * 24 * time.Hour)[0]
	for round := range figure(2, 6) {
		data := expired
		if round%2 == 0 {
			data = nil
		}
		s.setSecretData(data)
		began := time.Now()
		pods := []*pod{s.newPod("second"), s.newPod("second"), s.newPod("second")}
		for _, p := range pods {
			s.waitUntilReady(p)
		}
		t.Logf("three replicas were ready after %s", time.Since(began))
		s.waitForEndpoints(3)
		if got := authoritiesIn(s.waitForRotation(data)["ca.crt"]); got != round+1 {
			t.Errorf("there are %d authorities in round %d", got, round+1)
		}
		for i := range pods { // each of them alone
			for j, other := range pods {
				if i != j {
					network.remove(s.service, other.webhooks)
				}
			}
			yaretest.Eventually(t, func() error { return s.checkRefused(6) })
			for j, other := range pods {
				if i != j {
					network.add(s.service, other.webhooks)
				}
			}
		}
		for _, p := range pods {
			p.Kill()
			network.remove(s.service, p.webhooks)
		}
	}
}

// Row 9: two replicas are replaced one after the other, while kube-proxy is late and fast and slow users write. No call
// fails.
func rollingRestarts(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Pumps](t, cluster, network, "pumps-restarts")
	s.apply("second")
	pods := []*pod{s.start("second"), s.start("second")}
	yaretest.Eventually(t, func() error { return s.checkRefused(6) })
	users := startLoad(t, 8, func(ctx context.Context, caller, n int) error {
		if n%2 == 0 {
			return s.checkRefused(6)
		}
		_, err := s.pumps.Create(ctx, s.newPump(fmt.Sprintf("pump-%d-%d", caller, n), 5), kube.DryRun())
		return err
	})
	for range figure(3, 20) {
		pods = s.roll("second", pods...)
	}
	users.mustNotFail()
	s.answers.mustBeNone(t)
}

// toleratedTime is how long after the end of a replica calls may fail.
const toleratedTime = 5 * time.Second

// Row 10: a replica is killed during a call, and another one loses its lease during a call. Two replicas run. A call may
// fail if it is in flight or sent to the dead replica, and none later than toleratedTime after.
func crashAndLossOfTheLease(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Pumps](t, cluster, network, "pumps-crash")
	s.lease = "15s" // a busy machine must not make a replica lose a shorter one
	s.apply("first")
	pods := []*pod{s.start("first"), s.start("first")}
	yaretest.Eventually(t, func() error { return s.checkRefused(11) })
	leases := kube.Namespaced[coordinationv1.Lease](s.client, s.namespace)
	for _, each := range []struct {
		name string
		// end ends the leader.
		end    func(leader *pod)
		status int
	}{
		{"killed", func(leader *pod) { leader.Kill() }, -1},
		{"lost", func(*pod) {
			now := metav1.NowMicro()
			if _, err := leases.Modify(t.Context(), "pumps", func(l *coordinationv1.Lease) error {
				l.Spec.HolderIdentity, l.Spec.RenewTime = new("somebody"), &now
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		s.waitForEndpoints(2)
		leader, other := s.leaderOf(pods)
		users := startLoad(t, 4, func(ctx context.Context, caller, n int) error {
			_, err := s.pumps.Create(ctx, s.newPump(fmt.Sprintf("pump-%d-%d", caller, n), 5), kube.DryRun())
			return err
		})
		slow := s.startSlowCalls(20, pods)
		began := time.Now()
		each.end(leader)
		status := leader.Wait(t)
		ended := time.Now()
		s.later(func() { network.remove(s.service, leader.webhooks) })
		if status != each.status {
			t.Errorf("%s: the leader ended with the status %d, not %d", each.name, status, each.status)
		}
		failed := 0
		for _, err := range slow() {
			if err != nil {
				failed++
			}
		}
		t.Logf("%s: the leader ended after %s; of 20 slow calls %d have failed", each.name, ended.Sub(began), failed)
		if failed == 0 {
			t.Errorf("%s: no call was in flight", each.name)
		}
		users.waitForCalls(20, ended.Add(toleratedTime))
		for _, f := range users.end() {
			if f.began.After(ended.Add(toleratedTime)) {
				t.Errorf("%s: a call %s after the end of the leader has failed: %v", each.name, f.began.Sub(ended), f.err)
			}
		}
		yaretest.Eventually(t, func() error { // the other one leads now
			if lease, err := leases.Get(t.Context(), "pumps"); err != nil || !strings.HasPrefix(*lease.Spec.HolderIdentity, other.name+"_") {
				return fmt.Errorf("%s leads, %w", *lease.Spec.HolderIdentity, err)
			}
			return nil
		})
		pods = []*pod{other, s.start("first")}
	}
}

// leaderOf returns which of two Pods leads, and the other one.
func (s *pumpSite[G]) leaderOf(pods []*pod) (leader, other *pod) {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		lease, err := kube.Namespaced[coordinationv1.Lease](s.client, s.namespace).Get(s.t.Context(), "pumps")
		if err != nil {
			return err
		}
		for i, p := range pods {
			if h := lease.Spec.HolderIdentity; h != nil && strings.HasPrefix(*h, p.name+"_") {
				leader, other = p, pods[1-i]
				return nil
			}
		}
		return errors.New("no Pod leads")
	})
	return leader, other
}

// startSlowCalls begins n calls, each of which takes five seconds, and returns when the validators of the Pods have been called.
// The function that it returns waits for the errors of the calls.
func (s *pumpSite[G]) startSlowCalls(n int, pods []*pod) (wait func() []error) {
	s.t.Helper()
	called := func() (all int) {
		for _, p := range pods {
			all += strings.Count(strings.Join(p.Log(), "\n"), PumpWaits)
		}
		return all
	}
	before := called()
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			p := s.newPump(fmt.Sprint("slow-", i), 1)
			p.Spec.Act = "wait 5s"
			_, errs[i] = s.pumps.Create(s.t.Context(), p, kube.DryRun())
		})
	}
	yaretest.Eventually(s.t, func() error {
		if got := called() - before; got < n {
			return fmt.Errorf("%d of %d calls have reached a validator", got, n)
		}
		return nil
	})
	return func() []error { running.Wait(); return errs }
}

// Row 11: a release with webhooks follows one without, while users write. Then an earlier release follows that has fewer
// webhooks, then by the command of the guide one without, and then the last release again. No write fails, and the API
// server calls what the present release has, and nothing else.
func upgradeAndRollback(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Pumps](t, cluster, network, "pumps-upgrade")
	s.apply("none")
	// Regression: the end of the leader made the first new Pod the leader, which added its entries before kube-proxy knew
	// the Pod. Until then writes failed.
	leader, other := s.leaderOf([]*pod{s.start("none"), s.start("none")})
	pods := []*pod{leader, other}
	objects := figure(50, 1000)
	for i := range objects {
		if _, err := s.pumps.Create(t.Context(), s.newPump(fmt.Sprint("pump-", i), 1+i%5)); err != nil {
			t.Fatal(err)
		}
	}
	users := startLoad(t, 8, func(ctx context.Context, caller, n int) error {
		name := fmt.Sprint("pump-", (caller+8*n)%objects)
		switch n % 4 {
		case 0:
			_, err := s.pumps.Patch(ctx, name, kube.MergePatch(map[string]any{"spec": map[string]any{"size": 1 + n/4%5}}))
			return err
		case 1:
			_, err := s.pumps.Patch(ctx, name, kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"n": fmt.Sprint(n)}}}))
			return err
		case 2:
			own := s.newPump(fmt.Sprint("applied-", caller), 1+n/4%5)
			_, err := s.pumps.Apply(ctx, own)
			return err
		default:
			own := fmt.Sprintf("made-%d-%d", caller, n)
			_, err := s.pumps.Create(ctx, s.newPump(own, 3))
			return errors.Join(err, s.pumps.Delete(ctx, own))
		}
	})
	colorOf := func(name string) string {
		p, err := s.pumps.Create(t.Context(), s.newPump(name, 3), kube.DryRun())
		if err != nil {
			t.Fatal(err)
		}
		return p.Spec.Color
	}
	s.apply("second")
	pods = s.roll("second", pods...)
	yaretest.Eventually(t, func() error { // both configurations
		if got := colorOf("defaulted"); got != "red" {
			return fmt.Errorf("the new release sets the color %q", got)
		}
		return s.checkRefused(6)
	})

	s.apply("first")
	pods = s.roll("first", pods...)
	yaretest.Eventually(yaretest.Within(t, 10*time.Second), func() error {
		_, err := s.pumps.Create(t.Context(), s.newPump("larger", 10), kube.DryRun())
		return errors.Join(err, s.checkRefused(11), s.checkEntries(1, 0))
	})
	if got := colorOf("undefaulted"); got != "" {
		t.Errorf("the earlier release sets the color %q", got)
	}

	commands := guideCommands(t, "webhooks.md", "To go back to a release **without any webhook**", "cronjob", s.namespace)
	if same := guideCommands(t, "administration.md", "**To a release without webhooks**", "webapp", s.namespace); !slices.Equal(commands, same) {
		t.Errorf("two pages of the guide differ: %q and %q", commands, same)
	}
	for _, command := range commands {
		cluster.Kubectl(t, "", strings.Fields(command)[1:]...)
	}
	s.apply("none")
	pods = s.roll("none", pods...)
	if err := s.checkEntries(0, 0); err != nil {
		t.Errorf("after the rollback to a release without webhooks: %v", err)
	}
	if _, err := s.pumps.Create(t.Context(), s.newPump("large", 100), kube.DryRun()); err != nil {
		t.Errorf("the release without webhooks: %v", err)
	}

	s.apply("second")
	leader, other = s.leaderOf(pods)
	s.roll("second", leader, other)
	yaretest.Eventually(t, func() error { return errors.Join(s.checkRefused(6), s.checkEntries(1, 1)) })
	users.mustNotFail()
	s.answers.mustBeNone(t)
}

// checkEntries returns an error unless the configurations of the installation have these numbers of entries.
func (s *pumpSite[G]) checkEntries(validating, mutating int) error {
	name := "pumps." + s.namespace
	v, errV := kube.Get[admissionv1.ValidatingWebhookConfiguration](s.t.Context(), s.client, "", name)
	m, errM := kube.Get[admissionv1.MutatingWebhookConfiguration](s.t.Context(), s.client, "", name)
	if err := errors.Join(kube.IgnoreNotFound(errV), kube.IgnoreNotFound(errM)); err != nil {
		return err
	}
	var got [2]int
	if errV == nil {
		got[0] = len(v.Webhooks)
	}
	if errM == nil {
		got[1] = len(m.Webhooks)
	}
	if got != [2]int{validating, mutating} {
		return fmt.Errorf("there are %d entries of validators and %d of defaulters, not %d and %d", got[0], got[1], validating, mutating)
	}
	return nil
}

// guideCommands returns the commands of the first block of code after a text of a page of the guide. The name of the
// program there becomes pumps, and its namespace becomes another one.
func guideCommands(t *testing.T, page, after, program, namespace string) []string {
	t.Helper()
	content, err := os.ReadFile("../docs/guide/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), after)
	_, rest, _ = strings.Cut(rest, "```\n")
	block, _, isFound := strings.Cut(rest, "```")
	if !isFound {
		t.Fatalf("%s has no commands after %q", page, after)
	}
	block = strings.ReplaceAll(strings.ReplaceAll(block, program+"-system", namespace), program, "pumps")
	return strings.Split(strings.TrimSpace(block), "\n")
}

// Row 12: objects are older than a stricter validator and a defaulter. Whoever changes something else, and whoever deletes
// them or their namespace, is not refused, also while the operator is down.
func stricterRelease(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Everywhere](t, cluster, network, "pumps-stricter")
	s.isWide = true // else a namespace that ends takes the permissions in it along
	// Each of the namespaces is deleted. No replica runs when the last one is.
	s.users = append(s.users, cluster.Namespace(t), cluster.Namespace(t))
	s.apply("first")
	pods := []*pod{s.start("first"), s.start("first")}
	yaretest.Eventually(t, func() error { return s.checkRefused(11) })
	const objects = 10
	for _, namespace := range s.users {
		for i := range objects {
			p := s.newPump(fmt.Sprint("old-", i), 8)
			p.Namespace = namespace
			if _, err := s.pumps.For(s.client, namespace).Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.apply("second")
	pods = s.roll("second", pods...)
	yaretest.Eventually(t, func() error { return s.checkRefused(6) })

	for _, patch := range []map[string]any{
		{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}},
		{"metadata": map[string]any{"finalizers": []string{PumpFinalizer, "users.example.com/hold"}}},
		{"spec": map[string]any{"act": "nothing"}}, // the size is wrong already
	} {
		if _, err := s.pumps.Patch(t.Context(), "old-0", kube.MergePatch(patch)); err != nil {
			t.Errorf("the change %v of an object with a size that is refused now: %v", patch, err)
		}
	}
	p, err := s.pumps.Get(t.Context(), "old-1")
	if err != nil || p.Spec.Color != "" {
		t.Errorf("an old object that nobody has changed has the color %q, %v", p.Spec.Color, err)
	}
	if _, err := s.pumps.Patch(t.Context(), "old-2", kube.MergePatch(map[string]any{"spec": map[string]any{"size": 9}})); !kube.IsInvalid(err) {
		t.Errorf("a size that is worse than before: %v", err)
	}
	// Deletions, with finalizers of the operator and of users.
	for i := range 2 {
		if err := s.pumps.Delete(t.Context(), fmt.Sprint("old-", i)); err != nil {
			t.Error(err)
		}
	}
	yaretest.Eventually(t, func() error { // the operator has removed its finalizer, and a user removes the last one
		_, err := s.pumps.Get(t.Context(), "old-1")
		if !kube.IsNotFound(err) {
			return fmt.Errorf("old-1 is there: %w", err)
		}
		p, err := s.pumps.Get(t.Context(), "old-0")
		if err == nil && len(p.Finalizers) != 1 {
			err = fmt.Errorf("old-0 has the finalizers %q", p.Finalizers)
		}
		return err
	})
	noFinalizers := kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if _, err := s.pumps.Patch(t.Context(), "old-0", noFinalizers); err != nil {
		t.Errorf("the removal of a finalizer: %v", err)
	}
	s.mustLoseNamespace(s.users[1], false)

	for _, each := range pods { // now nobody answers
		each.Kill()
		network.remove(s.service, each.webhooks)
	}
	if _, err := s.pumps.Create(t.Context(), s.newPump("new", 1), kube.DryRun()); err == nil {
		t.Error("a new object is accepted while the operator is down")
	}
	for i := 2; i < objects; i++ {
		name := fmt.Sprint("old-", i)
		if err := s.pumps.Delete(t.Context(), name); err != nil {
			t.Errorf("a deletion while the operator is down: %v", err)
		}
		if _, err := s.pumps.Patch(t.Context(), name, noFinalizers); err != nil {
			t.Errorf("the removal of a finalizer while the operator is down: %v", err)
		}
	}
	s.mustLoseNamespace(s.users[2], true)
}

// mustLoseNamespace deletes a namespace of users and waits until it is gone. If isDown, it removes the finalizers, as a user
// does when the operator is down.
func (s *pumpSite[G]) mustLoseNamespace(namespace string, isDown bool) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		s.t.Fatal(err)
	}
	pumps := s.pumps.For(s.client, namespace)
	yaretest.Eventually(s.t, func() error {
		all, err := pumps.List(s.t.Context())
		if err != nil {
			return err
		}
		for _, p := range all {
			if isDown && p.DeletionTimestamp != nil {
				if _, err := pumps.Patch(s.t.Context(), p.Name, kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})); kube.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		_, err = kube.Get[corev1.Namespace](s.t.Context(), s.client, "", namespace)
		if !kube.IsNotFound(err) {
			return fmt.Errorf("the namespace has %d objects: %w", len(all), cmp.Or(err, errors.New("it is there")))
		}
		return nil
	})
}

// Row 13: a validator hangs, panics, and is called a thousand times at once. Each failure is one clear error, other calls
// get their answers, and the memory of the program is bounded.
func validatorThatFails(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Pumps](t, cluster, network, "pumps-failing")
	s.apply("first")
	pods := []*pod{s.start("first"), s.start("first")}
	yaretest.Eventually(t, func() error { return s.checkRefused(11) })
	calls := func(n int, act string) (errs []error) {
		errs = make([]error, n)
		var running sync.WaitGroup
		for i := range n {
			running.Go(func() {
				p := s.newPump(fmt.Sprintf("pump-%d", i), 1)
				p.Spec.Act = act
				_, errs[i] = s.pumps.Create(t.Context(), p, kube.DryRun())
			})
		}
		running.Wait()
		return errs
	}
	const webhook = "validate.pumps.pumps.example.com"
	var isHanging atomic.Bool
	isHanging.Store(true)
	var hanging sync.WaitGroup
	hanging.Go(func() {
		defer isHanging.Store(false)
		for _, err := range calls(figure(10, 50), "hang") {
			if err == nil || !strings.Contains(err.Error(), webhook+" did not answer in time") {
				t.Errorf("a validator that hangs: %v", err)
			}
		}
	})
	for _, err := range calls(10, "panic") {
		if err == nil || !strings.Contains(err.Error(), webhook+" panicked or ended its goroutine: at the pump") {
			t.Errorf("a validator that panics: %v", err)
		}
	}
	before := []float64{pods[0].memory(t), pods[1].memory(t)}
	most := []func() float64{pods[0].watchMemory(t), pods[1].watchMemory(t)}
	began := time.Now()
	failed := 0
	for _, err := range calls(1000, "wait 100ms") {
		switch {
		case err == nil:
		case strings.Contains(err.Error(), "too many calls of webhooks in flight"):
			failed++
		default:
			t.Errorf("one of 1,000 calls at once: %v", err)
		}
	}
	took := time.Since(began)
	for i, p := range pods {
		after := most[i]()
		t.Logf("%s: the memory was %.1f MB, and at most %.1f MB during 1,000 calls", p.name, before[i], after)
		if after-before[i] > 100 {
			t.Errorf("the calls have cost %.1f MB", after-before[i])
		}
	}
	t.Logf("1,000 calls at once took %s, and %d were refused because there were too many", took, failed)
	if !isHanging.Load() {
		t.Log("the calls that hang have ended first")
	}
	if err := s.checkRefused(11); err != nil {
		t.Errorf("while calls hang: %v", err)
	}
	hanging.Wait()
}

// memory returns the resident memory of the process in MB, by its metrics.
func (p *pod) memory(t *testing.T) float64 {
	t.Helper()
	response, err := http.Get("http://" + p.pages + "/metrics")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); ok {
			bytes, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Error(err)
			}
			return bytes / 1e6
		}
	}
	t.Error("the metrics lack the memory")
	return 0
}

// watchMemory returns a function that returns the most memory of the process since the call, in MB.
func (p *pod) watchMemory(t *testing.T) (most func() float64) {
	t.Helper()
	done := make(chan struct{})
	var watching sync.WaitGroup
	highest := p.memory(t)
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				highest = max(highest, p.memory(t))
			}
		}
	})
	return func() float64 { close(done); watching.Wait(); return highest }
}

// Row 14: the Namespace of an installation is deleted, and a second installation follows. Then a user uninstalls the second
// one. The cluster can be written each time, and the validation is on again in between.
func uninstallAndSecondInstallation(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newPumpSite[Uninstalled](t, cluster, network, "pumps-again")
	s.isDeployed = true
	write := func() error {
		_, err := s.pumps.Create(t.Context(), s.newPump("large", 100), kube.DryRun())
		return err
	}
	for _, end := range []func(pods []*pod){
		func(pods []*pod) {
			if err := s.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
				t.Fatal(err)
			}
			for _, p := range pods { // a namespace takes its Pods along, orderly or not
				p.Kill()
				network.remove(s.service, p.webhooks)
			}
			yaretest.Eventually(t, func() error {
				_, err := kube.Get[corev1.Namespace](t.Context(), s.client, "", s.namespace)
				if !kube.IsNotFound(err) {
					return fmt.Errorf("the Namespace is there: %w", err)
				}
				return nil
			})
			yaretest.Eventually(yaretest.Within(t, 10*time.Second), write)
		},
		func(pods []*pod) {
			s.command("first", append([]string{"uninstall", "--namespace", s.namespace, "--yes", "--delete-objects"}, s.watched()...)...)
			for _, p := range pods {
				p.Kill()
			}
			if err := s.checkEntries(0, 0); err != nil {
				t.Error(err)
			}
		},
	} {
		s.apply("first")
		pods := []*pod{s.start("first"), s.start("first")}
		yaretest.Eventually(t, func() error { return s.checkRefused(11) })
		if _, err := s.pumps.Apply(t.Context(), s.newPump("pump", 1)); err != nil {
			t.Fatal(err)
		}
		end(pods)
	}
	if err := s.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Error(err)
	}
}
