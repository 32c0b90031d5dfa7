package operator_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// The schedules of failures of a whole program with two versions of a kind, against a real API server that reaches the Pods
// through a Service. docs/reliability.md has the table of all schedules.
func TestVersionSchedules(t *testing.T) {
	t.Parallel()
	cluster, network := newScheduleServer(t)
	for _, each := range []struct {
		name string
		run  func(*testing.T, *yaretest.Cluster, *serviceNetwork)
	}{
		{"upgrade", versionUpgrade},
		{"life of a version", lifeOfAVersion},
		{"uninstall and two installations", uninstallOfTwoVersions},
		{"deletion of the Namespace", deletionOfTheNamespace},
		{"rolling restarts", restartsWhileConverting},
		{"jumps over rows", jumpsOverRows},
	} {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			each.run(t, cluster, network)
		})
	}
}

// Row 3: release B with two versions and a converter follows a release without webhooks, while users write. No call fails, and
// no field is lost.
func versionUpgrade(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newBulbSite(t, cluster, network, bulbGroup[UpgradedBulbs](), "bulbs-upgrade")
	n := versionsFigure(40, 1000)
	s.apply("A")
	pods := []*pod{s.start("A"), s.start("A")}
	s.create(1, n)
	users1 := s.startUsers(1, n)
	s.introduce("B", pods)
	s.waitUntilServed(2)
	users2 := s.startUsers(2, n)
	users1.waitForCalls(versionsFigure(100, 500), time.Now())
	users2.waitForCalls(versionsFigure(100, 500), time.Now())
	users1.mustNotFail()
	users2.mustNotFail()
	s.answers.mustBeNone(t)
	s.mustFit("in B", 1, 2)
	s.mustOwn("in B", 1, 1)
	s.mustOwn("in B", 2, 2)
}

// Row 4: an administrator leads a kind from row A of the guide to row E, and back by one row each, while users work in each
// version that is served. No call fails, no field is lost, and each user owns in the end what the user has owned.
func lifeOfAVersion(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newBulbSite(t, cluster, network, bulbGroup[LivingBulbs](), "bulbs-life")
	n := versionsFigure(16, 200)
	s.apply("A")
	pods := []*pod{s.start("A"), s.start("A")}
	s.create(1, n)
	users1 := s.startUsers(1, n)
	work := func(l *load) { l.waitForCalls(versionsFigure(30, 200), time.Now()) }

	pods = s.introduce("B", pods)
	s.waitUntilServed(2)
	users2 := s.startUsers(2, n)
	work(users2)
	pods = s.follow("C", pods)
	work(users2)
	s.command("C", "migrate")
	work(users2)
	users1.mustNotFail()
	s.mustFitWhile(users2, "in C", 1, 2)

	pods = s.follow("D", pods)
	s.waitForEnds()                    // a replica of C would publish its conversion again
	s.command("D", "migrate", "--yes") // only v1 can express a note
	s.model.forgetNotes()
	work(users2)
	pods = s.follow("E", pods)
	if strategy, _, _ := unstructured.NestedString(s.definition().Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("in E the strategy of the conversion is %s", strategy)
	}
	work(users2)
	users2.mustNotFail()
	s.mustFit("in E", 2)
	s.mustOwn("in E", 1, 2)
	s.mustOwn("in E", 2, 2)

	users2 = s.startUsers(2, n)
	pods = s.follow("D", pods)
	work(users2)
	pods = s.follow("C", pods)
	s.waitUntilServed(1)
	users1 = s.startUsers(1, n)
	work(users1)
	pods = s.follow("B", pods)
	work(users1)
	s.command("B", "migrate")
	work(users1)
	work(users2)
	users2.mustNotFail()
	s.mustFitWhile(users1, "back in B", 1, 2)
	s.command("B", "migrate", "--remove-version", "v2", "--yes")
	s.follow("A", pods)
	work(users1)
	users1.mustNotFail()
	s.answers.mustBeNone(t)
	s.mustFit("back in A", 1)
	s.mustOwn("back in A", 1, 1)
	s.mustOwn("back in A", 2, 1)
	s.waitForEnds()
}

// An administrator jumps over rows of the guide without a check. Calls fail meanwhile, and no data is lost.
func jumpsOverRows(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newBulbSite(t, cluster, network, bulbGroup[JumpingBulbs](), "bulbs-jumps")
	const n = 8
	jump := func(release string, old []*pod) []*pod {
		s.applyUnserved(release)
		return s.replace(release, old...)
	}
	edit := func(version, i int, change func(b *bulb)) {
		t.Helper()
		s.model.change(shared(i), change)
		if _, err := s.api(version).Patch(t.Context(), shared(i), kube.MergePatch(map[string]any{"spec": s.model.bulbs[shared(i)].specIn(version)})); err != nil {
			t.Errorf("a write in v%d: %v", version, err)
		}
	}
	s.apply("A")
	pods := []*pod{s.start("A"), s.start("A")}
	s.create(1, n)

	pods = jump("C", pods) // over B
	s.waitUntilServed(2)
	s.mustFit("after the jump from A to C", 1, 2)
	edit(2, 0, func(b *bulb) { b.watts = 7 })
	edit(1, 1, func(b *bulb) { b.note = "a note in C" })

	for _, release := range []string{"E", "A"} { // objects are stored in both versions
		if _, stderr, err := cluster.TryKubectl(t, s.manifests(release), "apply", "--server-side", "-f", "-"); err == nil || !strings.Contains(stderr, "status.storedVersions") {
			t.Errorf("the API server accepts the definition of %s: %v, %s", release, err, stderr)
		}
	}
	s.mustFit("after the refused jumps", 1, 2)

	s.command("C", "migrate")
	pods = jump("E", pods) // over D
	s.mustFit("after the jump from C to E", 2)
	edit(2, 4, func(b *bulb) { b.watts = 8 })
	pods = jump("C", pods)
	s.waitUntilServed(1)
	s.mustFit("after the jump from E to C", 1, 2)

	pods = s.follow("B", pods) // back, and then over C
	pods = jump("D", pods)
	s.waitUntilServed(2)
	s.mustFit("after the jump from B to D", 2)
	edit(2, 2, func(b *bulb) { b.hue, b.watts = "green", 9 })
	pods = jump("B", pods)
	s.waitUntilServed(1)
	s.mustFit("after the jump from D to B", 1, 2)
	edit(1, 3, func(b *bulb) { b.hue, b.shade = "blue", "light" })
	s.mustFit("in the end", 1, 2)
	for _, p := range pods {
		s.end(p)
	}
}

// mustFitWhile ends users, compares all bulbs with the model, and starts the users again.
func (s *bulbSite) mustFitWhile(users *load, when string, versions ...int) {
	s.t.Helper()
	users.mustNotFail()
	s.mustFit(when, versions...)
	users.start()
}

// Row 12: the replicas are replaced again and again, and the certificates rotate, while both versions are listed, watched and
// written. No conversion fails.
func restartsWhileConverting(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newBulbSite(t, cluster, network, bulbGroup[RestartedBulbs](), "bulbs-restarts")
	n := versionsFigure(16, 200)
	s.apply("B")
	s.setSecretData(s.agedSecrets(rotationAge - 30*time.Second)[0])
	pods := []*pod{s.start("B"), s.start("B")}
	s.waitForEndpoints(2)
	yaretest.Eventually(t, s.isPublished)
	s.waitUntilServed(2)
	s.create(1, n)
	watchers := []*bulbWatcher{s.watch(1), s.watch(2)}
	users := []*load{s.startUsers(1, n), s.startUsers(2, n)}
	for rolls := 0; rolls < versionsFigure(3, 20) || authoritiesIn(s.bundle()) < 2; rolls++ {
		pods = s.replace("B", pods...)
	}
	s.replace("B", pods...)
	for _, each := range users {
		each.waitForCalls(20, time.Now())
	}
	for _, each := range users {
		each.mustNotFail()
	}
	for _, each := range watchers {
		each.mustHaveSeenAll()
	}
	s.answers.mustBeNone(t)
	s.mustFit("after the restarts", 1, 2)
	if got := authoritiesIn(s.bundle()); got != 2 {
		t.Errorf("there are %d authorities after a rotation", got)
	}
	s.waitForEnds()
}

// definition returns the CustomResourceDefinition of bulbs.
func (s *bulbSite) definition() *unstructured.Unstructured {
	s.t.Helper()
	d, err := kube.Dynamic(s.client, definitionResource(), "").Get(s.t.Context(), "bulbs."+s.group)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func definitionResource() wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Plural:           "customresourcedefinitions", ClusterScoped: true,
	}
}

// bundle returns the bundle by which the API server verifies the converter.
func (s *bulbSite) bundle() []byte {
	s.t.Helper()
	text, _, _ := unstructured.NestedString(s.definition().Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return bundle
}

// setBundle replaces the bundle by which the API server verifies the converter.
func (s *bulbSite) setBundle(bundle []byte) {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"caBundle": bundle}}}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.cluster.Kubectl(s.t, "", "patch", "crd", "bulbs."+s.group, "--type=merge", "-p", string(patch))
}

// isPublished returns an error unless the API server has a bundle of the program.
func (s *bulbSite) isPublished() error {
	if authoritiesIn(s.bundle()) == 0 {
		return errors.New("no bundle is published")
	}
	return nil
}

// watchConversion records a problem for each state of the definition, from now on, by which API servers cannot convert: one without
// a webhook, or without a bundle. The returned function ends that, and fails the test for each problem.
func (s *bulbSite) watchConversion() (mustHaveStayed func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	api := kube.Dynamic(s.client, definitionResource(), "")
	var problems []string
	states := 0
	record := func(d *unstructured.Unstructured) {
		states++
		client, _, _ := unstructured.NestedMap(d.Object, "spec", "conversion", "webhook", "clientConfig")
		if client["service"] == nil || client["caBundle"] == nil {
			problems = append(problems, fmt.Sprintf("generation %d: %v", d.GetGeneration(), client))
		}
	}
	var watching sync.WaitGroup
	d := s.definition()
	record(d)
	watching.Go(func() {
		version := d.GetResourceVersion()
		for ctx.Err() == nil {
			for event, err := range api.Watch(ctx, version) {
				if err != nil {
					if ctx.Err() == nil {
						problems = append(problems, "the watch: "+err.Error())
					}
					return
				}
				if version = event.Object.GetResourceVersion(); event.Object.GetName() == d.GetName() {
					record(event.Object)
				}
			}
		}
	})
	end := sync.OnceFunc(func() { cancel(); watching.Wait() })
	s.t.Cleanup(end)
	return func() {
		s.t.Helper()
		last := s.definition().GetGeneration()
		end()
		if len(problems) > 0 {
			s.t.Errorf("API servers cannot convert by %d of %d states of the definition, up to generation %d: %v", len(problems), states, last, problems)
		}
	}
}

// converter returns the namespace of the Service that converts bulbs.
func (s *bulbSite) converter() string {
	s.t.Helper()
	namespace, _, _ := unstructured.NestedString(s.definition().Object, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	return namespace
}

// bulbWatcher watches bulbs in a version until the end of a test.
type bulbWatcher struct {
	site    *bulbSite
	version int
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	seen   map[string]bool
	lists  int
	events int
	failed []error
}

// watch starts a watcher of a version.
func (s *bulbSite) watch(version int) *bulbWatcher {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &bulbWatcher{site: s, version: version, cancel: cancel, seen: make(map[string]bool)}
	w.running.Go(func() { w.run(ctx) })
	s.t.Cleanup(func() { cancel(); w.running.Wait() })
	return w
}

// run lists and watches until ctx ends. A watch that ends is no failure: the API server ends watches when a definition changes.
func (w *bulbWatcher) run(ctx context.Context) {
	api := w.site.api(w.version)
	for ctx.Err() == nil {
		all, err := api.List(ctx)
		if err != nil && ctx.Err() == nil {
			w.recordFailure(err)
			return
		}
		w.mu.Lock()
		w.lists++
		w.mu.Unlock()
		version := ""
		for _, o := range all {
			w.record(o)
			version = o.GetResourceVersion()
		}
		for event, err := range api.Watch(ctx, version) {
			if err != nil {
				// A version that is too old is no failure: the list comes next.
				if e, isError := kube.AsError(err); ctx.Err() == nil && (!isError || e.Code != http.StatusGone) {
					w.recordFailure(err)
				}
				break
			}
			w.mu.Lock()
			w.events++
			w.mu.Unlock()
			if event.Type == "ADDED" || event.Type == "MODIFIED" {
				w.record(event.Object)
			}
		}
	}
}

// record records an object that was delivered, unless it lacks the color, which each bulb has.
func (w *bulbWatcher) record(o *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	spec, _ := o.Object["spec"].(map[string]any)
	if w.version == 1 && spec["color"] == nil || w.version == 2 && spec["hue"] == nil {
		w.failed = append(w.failed, fmt.Errorf("%s was delivered without its color: %v", o.GetName(), o.Object))
	}
	w.seen[o.GetName()] = true
}

func (w *bulbWatcher) recordFailure(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, err)
}

// mustHaveSeenAll ends the watcher, and fails the test for each failure and for each bulb that was not delivered.
func (w *bulbWatcher) mustHaveSeenAll() {
	t := w.site.t
	t.Helper()
	w.cancel()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.failed {
		t.Errorf("the watch of v%d: %v", w.version, err)
	}
	for name := range w.site.model.bulbs {
		if !w.seen[name] {
			t.Errorf("the watch of v%d has not shown %s", w.version, name)
		}
	}
	t.Logf("the watch of v%d: %d lists, %d events", w.version, w.lists, w.events)
}

// Row 11, first part: a second installation runs beside the first one, which has objects stored in two versions. One of them
// converts. When the first one is uninstalled, the second one converts. When the second one is uninstalled too, the objects can
// be read, written and deleted without a program.
//
// Regression: uninstall wrote the Service of the second installation into the definition without a bundle. A call of a user in the
// next milliseconds failed with "corrupt object", because API servers could not verify the converter.
func uninstallOfTwoVersions(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newBulbSite(t, cluster, network, bulbGroup[UninstalledBulbs](), "bulbs-uninstall")
	s.isDeployed = true
	s.users = []string{cluster.Namespace(t)} // the bulbs stay, because the program watches another namespace
	s.apply("B")
	pods := []*pod{s.start("B"), s.start("B")}
	yaretest.Eventually(t, s.isPublished)
	s.waitForEndpoints(2)
	s.waitUntilServed(2)
	const n = 8
	s.create(1, n)
	pods = s.follow("C", pods)
	for user := range 2 { // stored in v2, and the others in v1
		if _, err := s.v2.Patch(t.Context(), shared(user), kube.MergePatch(map[string]any{"spec": map[string]any{"watts": 7}})); err != nil {
			t.Fatal(err)
		}
		s.model.change(shared(user), func(b *bulb) { b.watts = 7 })
	}
	if got, _, _ := unstructured.NestedStringSlice(s.definition().Object, "status", "storedVersions"); len(got) != 2 {
		t.Errorf("objects are stored in %v", got)
	}

	// Two installations at once.
	second := s.another("bulbs-uninstall-second", "C")
	if _, stderr, err := second.tryCommand("C", append([]string{"manifests", "--image", "example.com/bulbs:v1", "--namespace", second.namespace, "--check"}, second.watched()...)...); err == nil || !strings.Contains(stderr, "the installation in the Namespace "+s.namespace+" converts the objects") {
		t.Errorf("a check of the definition by the second installation: %s", stderr)
	}
	generation := s.definition().GetGeneration()
	conversionMustHaveStayed := s.watchConversion()
	users := []*load{s.startUsers(1, n), s.startUsers(2, n)}
	for _, each := range users {
		each.waitForCalls(20, time.Now())
	}
	if d := s.definition(); d.GetGeneration() != generation || s.converter() != s.namespace {
		t.Errorf("two installations write the conversion: generation %d and then %d, by %s", generation, d.GetGeneration(), s.converter())
	}

	s.command("C", append([]string{"uninstall", "--namespace", s.namespace, "--yes"}, s.watched()...)...)
	for _, p := range pods { // kube-proxy learns of their end, and the Service is gone
		s.end(p)
	}
	yaretest.Eventually(t, func() error {
		if got := s.converter(); got != second.namespace {
			return errors.New("the conversion is that of " + got)
		}
		return nil
	})
	for _, each := range users {
		each.waitForCalls(20, time.Now())
		each.mustNotFail()
	}
	conversionMustHaveStayed()
	s.answers.mustBeNone(t)
	s.mustFit("after the first uninstall", 1, 2)

	s.command("C", append([]string{"uninstall", "--namespace", second.namespace, "--yes"}, s.watched()...)...)
	for _, p := range second.pods {
		p.Kill()
	}
	s.waitUntilServed(2)
	s.mustFit("without a program", 2)
	for i := range n {
		if _, err := s.v2.Patch(t.Context(), shared(i), kube.MergePatch(map[string]any{"spec": map[string]any{"hue": "black"}})); err != nil {
			t.Errorf("a write without a program: %v", err)
		}
	}
	s.mustLoseNamespace(2)
}

// secondSite is a second installation of the program of a bulbSite, with its Pods.
type secondSite struct {
	*bulbSite
	pods []*pod
}

// another installs the program a second time, without the definition, and starts two Pods.
func (s *bulbSite) another(namespace, release string) *secondSite {
	s.t.Helper()
	second := &secondSite{bulbSite: newBulbSite(s.t, s.cluster, s.network, s.group, namespace)}
	second.users, second.home, second.isDeployed = s.users, s.home, s.isDeployed
	second.apply(release, "--without-definitions")
	// A Pod is ready although another installation converts.
	second.pods = []*pod{second.start(release), second.start(release)}
	second.waitForEndpoints(2)
	return second
}

// mustLoseNamespace deletes the namespace of the users, and removes the finalizers of the program, because no program runs. The
// deletion may have to wait for the tests beside it, whose programs are down for a while, because the deletion of any namespace
// lists their objects too.
func (s *bulbSite) mustLoseNamespace(version int) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.home}}); err != nil {
		s.t.Fatal(err)
	}
	noFinalizers := kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	yaretest.Eventually(yaretest.Within(s.t, 5*time.Minute), func() error {
		all, err := s.api(version).List(s.t.Context())
		if err != nil {
			return err
		}
		for _, o := range all {
			if _, err := s.api(version).Patch(s.t.Context(), o.GetName(), noFinalizers); kube.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if err := s.releaseRoles(); err != nil {
			return err
		}
		namespace, err := kube.Get[corev1.Namespace](s.t.Context(), s.client, "", s.home)
		switch {
		case kube.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("the namespace has %d bulbs and the conditions %v", len(all), namespace.Status.Conditions)
	})
}

// releaseRoles removes the finalizers of the Roles and RoleBindings that other installations have in the namespace of the objects,
// as a user does for an installation whose program is gone.
func (s *bulbSite) releaseRoles() error {
	none := kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	roles, bindings := kube.Namespaced[rbacv1.Role](s.client, s.home), kube.Namespaced[rbacv1.RoleBinding](s.client, s.home)
	all, err := roles.List(s.t.Context())
	if err != nil {
		return err
	}
	for _, each := range all {
		if each.Name == "bulbs."+s.namespace {
			continue // its program runs
		}
		_, roleErr := roles.Patch(s.t.Context(), each.Name, none)
		_, bindingErr := bindings.Patch(s.t.Context(), each.Name, none)
		if err := errors.Join(kube.IgnoreNotFound(roleErr), kube.IgnoreNotFound(bindingErr)); err != nil {
			return err
		}
	}
	return nil
}

// Row 11, second part: the Namespace of the only installation is deleted, and a second installation follows. The objects of both
// versions can be read and written again, and namespaces can be deleted.
func deletionOfTheNamespace(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newBulbSite(t, cluster, network, bulbGroup[DeletedBulbs](), "bulbs-deleted")
	s.apply("B")
	pods := []*pod{s.start("B"), s.start("B")}
	yaretest.Eventually(t, s.isPublished)
	s.waitForEndpoints(2)
	s.waitUntilServed(2)
	const n = 8
	s.create(1, n)
	if err := s.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods { // a namespace takes its Pods along
		p.Kill()
		network.remove(s.service, p.webhooks)
	}
	// The objects are stored in v1, so that they can be read and written there.
	if _, err := s.v1.Patch(t.Context(), shared(0), kube.MergePatch(map[string]any{"spec": map[string]any{"note": "written meanwhile"}})); err != nil {
		t.Errorf("a write in the storage version while nobody converts: %v", err)
	}
	s.model.change(shared(0), func(b *bulb) { b.note = "written meanwhile" })
	yaretest.Eventually(t, func() error {
		_, err := kube.Get[corev1.Namespace](t.Context(), s.client, "", s.namespace)
		if !kube.IsNotFound(err) {
			return fmt.Errorf("the Namespace is there: %w", err)
		}
		return nil
	})

	second := newBulbSite(t, cluster, network, s.group, "bulbs-deleted-second")
	second.users, second.home, second.v1, second.v2, second.model = s.users, s.home, s.v1, s.v2, s.model
	second.apply("B", "--without-definitions") // the definition belongs to the first installation until the second one converts
	second.start("B")
	second.start("B")
	second.waitForEndpoints(2)
	second.apply("B", "--check")
	second.waitUntilServed(2)
	if got := second.converter(); got != second.namespace {
		t.Errorf("the conversion is that of %s", got)
	}
	second.mustFit("with the second installation", 1, 2)
	if _, err := s.v2.Patch(t.Context(), shared(1), kube.MergePatch(map[string]any{"spec": map[string]any{"watts": 5}})); err != nil {
		t.Errorf("a write: %v", err)
	}
	second.mustLoseNamespace(2)
}

// Row 1: etcd, with the definition and the Secret, is restored to before one rotation, and to before two. No conversion fails.
// Neither do those of replicas that start with the restored Secret.
func TestConversionsAfterARestoration(t *testing.T) {
	t.Parallel()
	cluster, network := newScheduleServer(t)
	s := newBulbSite(t, cluster, network, bulbGroup[RestoredBulbs](), "bulbs-restored")
	// A leader ends when a restoration takes its Lease, and its calls with it: see crashAndLossOfTheLease.
	s.isUnelected = true
	const n = 16
	s.apply("B")
	aged := s.agedSecrets(361*24*time.Hour, 181*24*time.Hour)
	var backups []string
	for _, data := range aged { // as of the time of each authority
		s.setSecretData(data)
		s.setBundle(data["ca.crt"])
		if len(backups) == 0 {
			s.create(1, n)
		}
		backups = append(backups, s.backUp())
	}
	pods := []*pod{s.start("B"), s.start("B")}
	s.waitForEndpoints(2)
	isRotated := func() error { // the second authority was due for a successor
		if got := authoritiesIn(s.bundle()); got < 3 { // a leader that starts with the backup can add a further one
			return fmt.Errorf("the bundle has %d authorities, not 3", got)
		}
		return nil
	}
	yaretest.Eventually(t, isRotated)
	s.waitUntilServed(2)

	for _, c := range []struct {
		when      string
		backup    string
		isRestart bool
	}{
		{"before one rotation", backups[1], false},
		{"before two rotations", backups[0], false},
		{"before two rotations, with a restart", backups[0], true},
	} {
		if c.isRestart {
			for _, p := range pods {
				p.Kill()
				network.remove(s.service, p.webhooks)
			}
		}
		s.restore(c.backup)
		yaretest.Eventually(t, s.isServed)
		if got := authoritiesIn(s.bundle()); got > 2 {
			t.Logf("%s: the replicas have corrected the bundle already", c.when)
		}
		if c.isRestart {
			s.start("B")
			s.start("B")
			s.waitForEndpoints(2)
		}
		s.model = &bulbModel{bulbs: make(map[string]bulb)} // what users have written since the backup is lost
		users := []*load{s.startUsers(1, n), s.startUsers(2, n)}
		if !c.isRestart {
			yaretest.Eventually(yaretest.Within(t, 10*time.Second), isRotated)
		}
		for _, each := range users {
			each.waitForCalls(100, time.Now())
		}
		for _, each := range users {
			each.mustNotFail()
		}
		s.answers.mustBeNone(t)
		for _, p := range pods {
			if err := p.readiness(); err != nil && !c.isRestart {
				t.Errorf("%s: %s: %v", c.when, p.name, err)
			}
		}
	}
}

// backUp copies the data of etcd, and returns the folder of the copy.
func (s *processSite) backUp() (folder string) {
	s.t.Helper()
	folder = filepath.Join(s.t.TempDir(), "etcd")
	s.whileEtcdIsDown(func(data string) error { return os.CopyFS(folder, os.DirFS(data)) })
	return folder
}

// restore replaces the data of etcd by a copy.
func (s *processSite) restore(folder string) {
	s.t.Helper()
	s.whileEtcdIsDown(func(data string) error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(folder)))
	})
}

// whileEtcdIsDown calls f with the folder of etcd while the API server and etcd are down.
func (s *processSite) whileEtcdIsDown(f func(data string) error) {
	s.t.Helper()
	s.cluster.Stop(s.t, yaretest.APIServer)
	s.cluster.Stop(s.t, yaretest.Etcd)
	if err := f(filepath.Join(filepath.Dir(s.cluster.Kubeconfig()), "etcd")); err != nil {
		s.t.Fatal(err)
	}
	s.cluster.StartComponent(s.t, yaretest.Etcd)
	s.cluster.StartComponent(s.t, yaretest.APIServer)
}
