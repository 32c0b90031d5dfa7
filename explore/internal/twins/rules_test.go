package twins

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// ruleTwin is an operator that breaks a rule in each run that gives it the opportunity, and its twin that does not.
type ruleTwin struct {
	name, rule   string
	wrong, right func() []operator.Part
	steps        []finding.Step
	// kinds are the runs that show the mistake. If there are none, the references do.
	kinds []faults.Kind
	// pairs are second samples.
	pairs []json.RawMessage
	// isWarning is true if the mistake is a warning.
	isWarning bool
}

// ruleTwins returns the twins of the rules. Most of them are written as the book of controller-runtime writes operators:
// they read, and then create or update whole objects.
func ruleTwins() []ruleTwin {
	deletion := []faults.Kind{faults.Deletion, faults.Clones} // two runs have to show what is left
	metadata := []faults.Kind{faults.StrangerMetadata}
	return []ruleTwin{
		{
			name: "leaves a child without an owner", rule: "gone", kinds: deletion, steps: single(SiteSpec{}),
			wrong: parts(createOr(newOrphan, leaveAsIs)), right: parts(createOr(newMainPage, setText)),
		}, {
			name: "waits for what waits for it", rule: "gone", kinds: deletion, steps: single(SiteSpec{}),
			wrong: finalizing(controller.CleanupPending()), right: finalizing(controller.CleanupDone()),
		}, {
			name: "writes the environment in any order", rule: "at rest", steps: changed(), kinds: []faults.Kind{faults.ManyChanges},
			wrong: running(shuffled, recordReady), right: running(sorted, recordReady),
		}, {
			name: "counts its looks", rule: "at rest", steps: single(SiteSpec{}), kinds: []faults.Kind{faults.Waiting}, isWarning: true,
			wrong: looking(func(s *Site) { s.Status.Checks++ }), right: looking(func(s *Site) { s.Status.Seen = new(metav1.Now()) }),
		}, {
			name: "makes its page again for nothing", rule: "remade", steps: resized(1, 2),
			wrong: parts(remakeOnResize), right: parts(applyAndRecord),
		}, {
			name: "is ready before its Pods", rule: "ready too early", steps: single(SiteSpec{}),
			wrong: running(sorted, recordReadyAtOnce), right: running(sorted, recordReady),
		}, {
			name: "says it has seen what it has not", rule: "ready too early", steps: resized(1, 2),
			wrong: parts(recordGenerations), right: parts(recordGeneration),
		}, {
			name: "wipes the labels of others", rule: "what others put", kinds: metadata, steps: single(SiteSpec{}),
			wrong: parts(createOr(newLabelledPage, setLabels)), right: parts(createOr(newLabelledPage, setLabel)),
		}, {
			name: "wipes the finalizers of others", rule: "what others put", kinds: metadata, steps: single(SiteSpec{}),
			wrong: parts(createOr(newMainPage, setFinalizers)), right: parts(createOr(newMainPage, setText)),
		}, {
			name: "wipes the environment of others", rule: "what others put", steps: single(SiteSpec{}), kinds: []faults.Kind{faults.StrangerItem}, isWarning: true,
			wrong: running(sorted, recordReady), right: running(merged, recordReady),
		}, {
			name: "deletes the pages of another Site", rule: "another's", kinds: []faults.Kind{faults.Clones}, steps: single(SiteSpec{}),
			wrong: cleaningUp(applyMainPage, deleteAllPages), right: cleaningUp(applyMainPage, deleteOwnPages),
		}, {
			name: "writes the text of the last Site on all pages", rule: "another's", kinds: []faults.Kind{faults.Pair}, steps: single(SiteSpec{}),
			pairs: []json.RawMessage{siteObject("shop", SiteSpec{Text: "shop", Size: 1})},
			wrong: parts(applyToAllPages), right: parts(applyMainPage),
		}, {
			name: "makes a page for each generation", rule: "growth", kinds: []faults.Kind{faults.ManyChanges}, steps: single(SiteSpec{}),
			wrong: parts(applyPageOfGeneration), right: parts(applyAndRecord),
		}, {
			name: "remembers each change", rule: "growth", kinds: []faults.Kind{faults.ManyChanges}, steps: single(SiteSpec{}),
			wrong: parts(recordingChanges(1000)), right: parts(recordingChanges(5)),
		},
	}
}

// An exploration finds what breaks a rule, and nothing in the right twin.
func TestExploreRules(t *testing.T) {
	if testing.Short() || os.Getenv(modeVariable) == modeRight {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	seed := seedOf(t)
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	for _, twin := range ruleTwins() {
		isQuick := slices.Contains([]string{"wipes the labels of others", "is ready before its Pods"}, twin.name)
		if os.Getenv(modeVariable) != modeAll && !isQuick {
			continue
		}
		options := engine.Settings{Config: cluster.Config(), Steps: twin.steps, PairSamples: twin.pairs, Seed: seed, Only: append([]faults.Kind{faults.StrangerField}, twin.kinds...)}
		t.Run(twin.name+"/wrong", func(t *testing.T) {
			t.Parallel()
			record, err := engine.Explore(t.Context(), engine.Parts("twin", twin.wrong), options)
			if err != nil {
				t.Fatal(err)
			}
			requireRule(t, twin, record)
			if !isQuick || t.Failed() {
				return
			}
			again, err := engine.Replay(t.Context(), engine.Parts("twin", twin.wrong), options, record.Findings[0], 1)
			if err != nil || again.Seen != 1 {
				t.Errorf("a replay shows the finding %d times: %v", again.Seen, err)
			}
		})
		t.Run(twin.name+"/right", func(t *testing.T) {
			t.Parallel()
			record := requireNotFound(t, engine.Parts("twin", twin.right), options)
			for _, f := range record.Findings {
				if f.Rule != "" && f.Rule == twin.rule && !(twin.isWarning && f.Verdict == finding.BreaksRule) {
					t.Errorf("%s: %s", f.Rule, f.Summary)
				}
			}
		})
	}
}

// requireRule fails t unless a record has the finding of a twin, and all findings are of its rule.
func requireRule(t *testing.T, twin ruleTwin, record finding.Record) {
	t.Helper()
	verdict, isFound := finding.BreaksRule, false
	if twin.isWarning {
		verdict = finding.MayBreakRule
	}
	for _, f := range record.Findings {
		t.Logf("%s: %s, seen in %d of %d runs", f.Rule, f.Summary, f.Seen, f.Tries)
		isFound = isFound || f.Rule == twin.rule && f.Verdict == verdict
		if f.Rule != twin.rule {
			t.Errorf("another finding: %s: %s", f.Verdict, report.Summary(f))
		}
	}
	if !isFound {
		t.Errorf("%d runs do not show that the rule %q is broken; notes: %q", record.Coverage.Runs, twin.rule, record.Coverage.Notes)
	}
}

// newOrphan returns the desired page of s without an owner. Nobody deletes the page.
func newOrphan(s *Site) *corev1.ConfigMap {
	page := newMainPage(s)
	page.OwnerReferences = nil
	return page
}

// finalizing returns a maker of the parts of a program with a cleanup. A pending cleanup waits until the page is
// gone. The garbage collector deletes the page when its Site is gone.
func finalizing(whilePageExists controller.Cleanup) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{newController(applyMainPage).Finalizer(finalizer, func(ctx context.Context, s *Site, c *kube.Client) (controller.Cleanup, error) {
			if _, err := pagesOf(s, c).Get(ctx, pageName(s)); kube.IsNotFound(err) {
				return controller.CleanupDone(), nil
			}
			return whilePageExists, nil
		})}
	}
}

// workloadFunc changes the Deployment of a Site to the wanted state.
type workloadFunc func(d *appsv1.Deployment, s *Site)

// running returns a maker of the parts of a program with a Deployment. It creates or updates the whole object, and then
// records its state.
func running(change workloadFunc, record func(ctx context.Context, s *Site, c *kube.Client, d *appsv1.Deployment) error) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{controller.New(func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
			d, err := createOrUpdate(ctx, s, c, change)
			if err != nil {
				return controller.Done(), err
			}
			return controller.Done(), record(ctx, s, c, d)
		}, controller.Owns[appsv1.Deployment](controller.WriteVerbs(wire.VerbCreate, wire.VerbUpdate)))}
	}
}

// createOrUpdate creates the Deployment of a Site, or updates it where it differs, as CreateOrUpdate of controller-runtime
// does.
func createOrUpdate(ctx context.Context, s *Site, c *kube.Client, change workloadFunc) (*appsv1.Deployment, error) {
	api := kube.Namespaced[appsv1.Deployment](c, s.Namespace)
	_, err := api.Get(ctx, s.Name)
	if kube.IsNotFound(err) {
		d := kube.OwnedBy(s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}})
		change(d, s)
		return api.Create(ctx, d)
	}
	if err != nil {
		return nil, err
	}
	return api.Modify(ctx, s.Name, func(d *appsv1.Deployment) error { change(d, s); return nil })
}

// environment returns the environment of a Site, sorted.
func environment(s *Site) (variables []corev1.EnvVar) {
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		variables = append(variables, corev1.EnvVar{Name: name, Value: s.Spec.Text})
	}
	return variables
}

// sorted writes the whole template, with the environment in its order.
func sorted(d *appsv1.Deployment, s *Site) { setWorkload(d, s, environment(s)) }

// shuffled writes the environment in the order of a map for each Site that has changed.
func shuffled(d *appsv1.Deployment, s *Site) {
	variables := environment(s)
	if d.Annotations["seen"] != fmt.Sprint(s.Generation) {
		rand.Shuffle(len(variables), func(i, j int) { variables[i], variables[j] = variables[j], variables[i] })
	} else {
		variables = d.Spec.Template.Spec.Containers[0].Env
	}
	if d.Annotations == nil {
		d.Annotations = make(map[string]string)
	}
	d.Annotations["seen"] = fmt.Sprint(s.Generation)
	for i := range variables {
		variables[i].Value = "constant"
	}
	setWorkload(d, s, variables)
}

// merged writes the variables of the Site, and keeps those of others.
func merged(d *appsv1.Deployment, s *Site) {
	variables := environment(s)
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		for _, v := range containers[0].Env {
			isOwn := slices.ContainsFunc(variables, func(own corev1.EnvVar) bool { return own.Name == v.Name })
			if !isOwn {
				variables = append(variables, v)
			}
		}
	}
	setWorkload(d, s, variables)
}

// setWorkload sets the fields of the Deployment of a Site, as CreateOrUpdate expects it: defaults of the server stay.
func setWorkload(d *appsv1.Deployment, s *Site, variables []corev1.EnvVar) {
	labels := map[string]string{siteLabel: s.Name}
	d.Spec.Replicas = new(int32(1))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	if len(d.Spec.Template.Spec.Containers) == 0 {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "site"}}
	}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Image, container.Env = "nginx:1.27", variables
}

// recordReady records whether the Deployment is complete.
func recordReady(ctx context.Context, s *Site, c *kube.Client, d *appsv1.Deployment) error {
	isReady := d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.AvailableReplicas == 1
	kube.SetCondition(ctx, &s.Status.Conditions, s, "Ready", isReady, "Workload", "")
	s.Status.ObservedGeneration = s.Generation
	return c.ApplyStatus(ctx, s)
}

// recordReadyAtOnce takes a Deployment that exists for one that is ready.
func recordReadyAtOnce(ctx context.Context, s *Site, c *kube.Client, _ *appsv1.Deployment) error {
	kube.SetCondition(ctx, &s.Status.Conditions, s, "Ready", true, "Applied", "")
	s.Status.ObservedGeneration = s.Generation
	return c.ApplyStatus(ctx, s)
}

// lookInterval is the time between two looks of the twins that look at their Sites at intervals.
const lookInterval = 3 * time.Second

// looking returns a maker of the parts of a program that records something at intervals.
func looking(record func(s *Site)) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{controller.New(func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
			if err := applyMainPage(ctx, s, c); err != nil {
				return controller.Done(), err
			}
			if s.Status.Seen != nil && time.Since(s.Status.Seen.Time) < lookInterval-time.Second {
				return controller.RequeueAfter(lookInterval), nil // the write itself was delivered
			}
			record(s)
			s.Status.Seen = new(metav1.Now())
			return controller.RequeueAfter(lookInterval), c.ApplyStatus(ctx, s)
		}, controller.Owns[corev1.ConfigMap]())}
	}
}

// remakeOnResize deletes the page of a Site with another size, and makes the page again. The page has no size.
func remakeOnResize(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.Size != 0 && s.Status.Size != s.Spec.Size {
		if err := kube.IgnoreNotFound(pagesOf(s, c).Delete(ctx, pageName(s))); err != nil {
			return err
		}
	}
	s.Status.Size = s.Spec.Size
	return applyAndRecord(ctx, s, c)
}

// recordGeneration records the generation of the Site.
func recordGeneration(ctx context.Context, s *Site, c *kube.Client) error {
	s.Status.ObservedGeneration = s.Generation
	return applyAndRecord(ctx, s, c)
}

// recordGenerations records the generation of the Site, and then the size of its page as the generation: it takes the
// wrong number.
func recordGenerations(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.ObservedGeneration == s.Generation || s.Generation > 1 && s.Status.Page == "done" {
		return nil
	}
	if err := recordGeneration(ctx, s, c); err != nil || s.Generation == 1 {
		return err
	}
	s.Status.ObservedGeneration, s.Status.Page = s.Generation-1, "done"
	return c.ApplyStatus(ctx, s)
}

// setLabels replaces all labels of a page.
func setLabels(page *corev1.ConfigMap, s *Site) { page.Labels = newLabelledPage(s).Labels }

// setLabel sets one label of a page.
func setLabel(page *corev1.ConfigMap, s *Site) { page.Labels[siteLabel] = s.Name }

// setFinalizers replaces all finalizers of a page by none.
func setFinalizers(page *corev1.ConfigMap, s *Site) {
	setText(page, s)
	page.Finalizers = nil
}

// deleteAllPages deletes the pages of all Sites in the namespace.
func deleteAllPages(ctx context.Context, s *Site, c *kube.Client) error {
	all, err := pagesOf(s, c).List(ctx)
	if err != nil {
		return err
	}
	for _, page := range all {
		if !strings.HasSuffix(page.Name, "-main") {
			continue
		}
		if err := kube.IgnoreNotFound(pagesOf(s, c).Delete(ctx, page.Name)); err != nil {
			return err
		}
	}
	return nil
}

// applyToAllPages applies the page of a Site, and sets its text on the pages of all Sites that do not have it.
func applyToAllPages(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.Page != "" {
		return nil
	}
	if err := applyAndRecord(ctx, s, c); err != nil {
		return err
	}
	all, err := pagesOf(s, c).List(ctx)
	if err != nil {
		return err
	}
	for _, page := range all {
		if page.Data["text"] == "" || page.Data["text"] == s.Spec.Text {
			continue
		}
		if _, err := pagesOf(s, c).Modify(ctx, page.Name, func(page *corev1.ConfigMap) error { setText(page, s); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// deleteOwnPages deletes the pages of a Site.
func deleteOwnPages(ctx context.Context, s *Site, c *kube.Client) error {
	return deleteOtherPages(ctx, s, c)
}

// applyPageOfGeneration makes a page for each generation of a Site.
func applyPageOfGeneration(ctx context.Context, s *Site, c *kube.Client) error {
	return applyPage(ctx, s, c, fmt.Sprintf("%s-v%d", s.Name, s.Generation))
}

// recordingChanges returns a function that keeps the last changes of a Site in its status.
func recordingChanges(most int) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		if s.Status.ObservedGeneration != s.Generation {
			s.Status.Former = append(s.Status.Former, Page{Name: fmt.Sprint(s.Generation), UID: s.UID})
			s.Status.Former = s.Status.Former[max(len(s.Status.Former)-most, 0):]
		}
		return recordGeneration(ctx, s, c)
	}
}
