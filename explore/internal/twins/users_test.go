package twins

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// The operators of this file are wrong when users change or delete whole objects, or give objects similar names.

// settingsName is the name of the ConfigMap that Sites refer to.
const settingsName = "settings"

// configured returns the steps of a Site that refers to a ConfigMap. In the last step the user deletes both.
func configured() []finding.Step {
	settings := json.RawMessage(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue", "speed": "10"}}`)
	login := &Login{Secret: settingsName}
	last := deleting("web")
	last.Delete = append(last.Delete, faults.Object{Resource: "configmaps", Name: settingsName})
	return []finding.Step{{Name: "apply web and its settings", Apply: []json.RawMessage{settings, siteObject("web", SiteSpec{Login: login})}}, last}
}

// alone returns the steps of a Site that the user deletes in the end.
func alone() []finding.Step { return []finding.Step{applying("web", SiteSpec{}), deleting("web")} }

// bySettings is the index of Sites by the ConfigMaps that they refer to.
func bySettings() *kube.Index {
	return kube.NewIndex("settings", func(s *Site) []string {
		if s.Spec.Login == nil {
			return nil
		}
		return []string{s.Spec.Login.Secret}
	})
}

// watchingSettings returns a function that makes the parts of a program that watches the ConfigMaps that Sites refer to.
func watchingSettings(reconcile func() reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{newController(reconcile(), controller.WatchesReferenced[corev1.ConfigMap](bySettings()))}
	}
}

// readSettings returns the settings of s. A Site that refers to no ConfigMap, or to none that exists, has none.
func readSettings(ctx context.Context, s *Site, c *kube.Client) (map[string]string, error) {
	if s.Spec.Login == nil {
		return nil, nil
	}
	settings, err := pagesOf(s, c).Get(ctx, s.Spec.Login.Secret)
	if err != nil {
		return nil, kube.IgnoreNotFound(err)
	}
	return settings.Data, nil
}

// applyWithSettings applies the page with the settings of the Site. A Site without settings has no page.
func applyWithSettings(ctx context.Context, s *Site, c *kube.Client) error {
	settings, err := readSettings(ctx, s, c)
	if err != nil {
		return err
	}
	s.Status.Problem = ""
	if settings == nil {
		s.Status.Problem = "there are no settings"
		return c.ApplyStatus(ctx, s)
	}
	page := newMainPage(s)
	maps.Copy(page.Data, settings)
	if _, err := kube.Apply(ctx, c, page); err != nil {
		return err
	}
	if err := deleteOtherPages(ctx, s, c, page.Name); err != nil {
		return err
	}
	return c.ApplyStatus(ctx, s)
}

// rememberSettings returns a function that reads the settings of a Site once, and keeps them in memory.
func rememberSettings() reconcileFunc {
	var known sync.Map // from kube.Key to map[string]string
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		key := s.Namespace + "/" + s.Name
		settings, isKnown := known.Load(key)
		if !isKnown {
			read, err := readSettings(ctx, s, c)
			if err != nil {
				return err
			}
			if read == nil {
				return applyWithSettings(ctx, s, c) // reports that there are none
			}
			known.Store(key, read)
			settings = read
		}
		page := newMainPage(s)
		maps.Copy(page.Data, settings.(map[string]string))
		s.Status.Problem = ""
		if _, err := kube.Apply(ctx, c, page); err != nil {
			return err
		}
		return c.ApplyStatus(ctx, s)
	}
}

// mergeSettings changes a page that exists. A key that the user has removed from the settings stays in the page.
func mergeSettings(ctx context.Context, s *Site, c *kube.Client) error {
	settings, err := readSettings(ctx, s, c)
	if err != nil {
		return err
	}
	if _, err := pagesOf(s, c).Get(ctx, pageName(s)); err != nil || settings == nil {
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
		return applyWithSettings(ctx, s, c)
	}
	_, err = pagesOf(s, c).Modify(ctx, pageName(s), func(page *corev1.ConfigMap) error {
		page.Data["text"] = s.Spec.Text
		maps.Copy(page.Data, settings)
		return nil
	})
	return err
}

// maxLabel is how many characters the value of a label may have.
const maxLabel = 63

// applyNamed returns a function that applies one page with a name.
func applyNamed(name func(s *Site) string) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error { return applyPage(ctx, s, c, name(s)) }
}

// createNamed returns a function that creates one page with a name. A page that exists is taken for the page of the Site.
func createNamed(name func(s *Site) string) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		_, err := pagesOf(s, c).Create(ctx, newPage(s, name(s)))
		if kube.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
}

// claimNamed returns a function that applies one page with a name, unless another Site is the owner of the page. Then it
// fails.
func claimNamed(name func(s *Site) string) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		page, err := pagesOf(s, c).Get(ctx, name(s))
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && !metav1.IsControlledBy(page, s) {
			return fmt.Errorf("object %s/%s is already owned by another Site controller", page.Namespace, page.Name)
		}
		return applyPage(ctx, s, c, name(s))
	}
}

// cutName returns the name of the page of s, cut to the length of a label.
func cutName(s *Site) string {
	name := s.Name + "-page"
	return name[:min(len(name), maxLabel)]
}

// hashedName returns the name of the page of s. A long name ends with a hash.
func hashedName(s *Site) string {
	name := s.Name + "-page"
	if len(name) <= maxLabel {
		return name
	}
	hash := fmt.Sprintf("-%x", sha256.Sum256([]byte(name)))[:9]
	return name[:maxLabel-len(hash)] + hash
}

// refuseLongNames applies the page, unless its name is too long. Then the Site has none, and the status says why.
func refuseLongNames(ctx context.Context, s *Site, c *kube.Client) error {
	if name := s.Name + "-page"; len(name) > maxLabel {
		s.Status.Problem = "the name is too long"
		return c.ApplyStatus(ctx, s)
	}
	return applyPage(ctx, s, c, s.Name+"-page")
}

// flatName returns the name of the page of s without dots.
func flatName(s *Site) string { return strings.ReplaceAll(s.Name, ".", "-") + "-page" }

// applyLongPage applies the page, whose name is as long as the name of s.
func applyLongPage(ctx context.Context, s *Site, c *kube.Client) error {
	return applyPage(ctx, s, c, s.Name+"-page")
}

// deletePagesByPrefix deletes all pages whose names begin with the name of s.
func deletePagesByPrefix(ctx context.Context, s *Site, c *kube.Client) error {
	pages, err := pagesOf(s, c).List(ctx)
	if err != nil {
		return err
	}
	for _, page := range pages {
		if strings.HasPrefix(page.Name, s.Name+"-") {
			if err := deletePage(ctx, s, c, Page{Name: page.Name, UID: page.UID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteLongPage deletes the page of s, which may be gone.
func deleteLongPage(ctx context.Context, s *Site, c *kube.Client) error {
	return kube.IgnoreNotFound(pagesOf(s, c).Delete(ctx, s.Name+"-page"))
}

// unwatchedCleaning returns a function that makes the parts of a program that watches no page, and cleans up after a Site.
func unwatchedCleaning(cleanup reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		reconcile := func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
			return controller.Done(), applyLongPage(ctx, s, c)
		}
		return []operator.Part{controller.New(reconcile, controller.Reads[corev1.ConfigMap](wire.VerbGet, wire.VerbList),
			controller.Writes[corev1.ConfigMap](wire.VerbCreate, wire.VerbPatch, wire.VerbDelete)).Finalizer(finalizer,
			func(ctx context.Context, s *Site, c *kube.Client) (controller.Cleanup, error) {
				return controller.CleanupDone(), cleanup(ctx, s, c)
			})}
	}
}

// giveUpOnRefusal applies the page. It logs that the server forbids the page, and does not try again.
func giveUpOnRefusal(ctx context.Context, s *Site, c *kube.Client) error {
	err := applyMainPage(ctx, s, c)
	if kube.IsForbidden(err) {
		controller.Log(ctx).Warn("no page", "error", err)
		return nil
	}
	return err
}

// runningJobs returns a function that makes the parts of a program that owns Jobs.
func runningJobs(reconcile reconcileFunc) func() []operator.Part {
	return parts(reconcile, controller.Owns[batchv1.Job](controller.WriteVerbs(wire.VerbCreate, wire.VerbPatch, wire.VerbDelete)))
}

// newJob returns the desired Job of s, which goes a minute after it has finished.
func newJob(s *Site) *batchv1.Job {
	return kube.OwnedBy(s, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec: batchv1.JobSpec{
			TTLSecondsAfterFinished: new(int32(3600)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "job", Image: "job:1"}},
			}},
		},
	})
}

// applyJob applies the page and the Job.
func applyJob(ctx context.Context, s *Site, c *kube.Client) error {
	if err := applyMainPage(ctx, s, c); err != nil {
		return err
	}
	_, err := kube.Apply(ctx, c, newJob(s))
	return err
}

// applyJobOnce applies the page, and the Job until the Job has finished. The status of the Site remembers that.
func applyJobOnce(ctx context.Context, s *Site, c *kube.Client) error {
	if err := applyMainPage(ctx, s, c); err != nil {
		return err
	}
	if s.Status.Checks > 0 {
		return nil
	}
	job, err := kube.Apply(ctx, c, newJob(s))
	if err != nil || job.Status.CompletionTime == nil {
		return err
	}
	s.Status.Checks = 1
	return c.ApplyStatus(ctx, s)
}

// servingPods returns a function that makes the parts of a program that owns Pods.
func servingPods(reconcile reconcileFunc) func() []operator.Part {
	return parts(reconcile, controller.Owns[corev1.Pod](controller.WriteVerbs(wire.VerbCreate, wire.VerbPatch, wire.VerbDelete)))
}

// applyPod applies the page and the Pod.
func applyPod(ctx context.Context, s *Site, c *kube.Client) error {
	if err := applyMainPage(ctx, s, c); err != nil {
		return err
	}
	_, err := kube.Apply(ctx, c, kube.OwnedBy(s, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}))
	return err
}

// replaceEvicted deletes a Pod that has failed, and applies the page and the Pod.
func replaceEvicted(ctx context.Context, s *Site, c *kube.Client) error {
	pods := kube.Namespaced[corev1.Pod](c, s.Namespace)
	pod, err := pods.Get(ctx, s.Name)
	if kube.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && pod.Status.Phase == corev1.PodFailed {
		err := pods.Delete(ctx, pod.Name, kube.RequireUID(pod.UID))
		if err != nil && !kube.IsUIDConflict(err) && !kube.IsNotFound(err) {
			return err
		}
	}
	return applyPod(ctx, s, c)
}

// resizingSites returns the parts of a program that writes what it has decided into the declared state.
func resizingSites() []operator.Part {
	return []operator.Part{newController(func(ctx context.Context, s *Site, c *kube.Client) error {
		if s.Spec.Size > 1 {
			patch := kube.MergePatch(map[string]any{"spec": map[string]any{"size": 1}})
			if _, err := kube.Namespaced[Site](c, s.Namespace).Patch(ctx, s.Name, patch); err != nil {
				return err
			}
		}
		return applyMainPage(ctx, s, c)
	}, controller.Writes[Site](wire.VerbPatch))}
}

// applyWithAnnotations applies the page with the annotations of the Site.
func applyWithAnnotations(ctx context.Context, s *Site, c *kube.Client) error {
	page := newMainPage(s)
	page.Annotations = s.Annotations
	_, err := kube.Apply(ctx, c, page)
	return err
}

// usersTwins returns the twins of this file.
func usersTwins() []twin {
	var (
		change  = []faults.Kind{faults.ObjectChange}
		similar = []faults.Kind{faults.SimilarNames}
		applies = func(f reconcileFunc) func() reconcileFunc { return func() reconcileFunc { return f } }
		right   = watchingSettings(applies(applyWithSettings))
	)
	return []twin{
		{
			name: "does not watch its settings", wrong: parts(applyWithSettings), right: right,
			steps: configured(), finds: change, verdict: finding.NeedsRestart,
		}, {
			name: "reads its settings once", wrong: watchingSettings(rememberSettings), right: right,
			steps: configured(), finds: change, verdict: finding.NeedsRestart,
		}, {
			name: "keeps settings that were removed", wrong: watchingSettings(applies(mergeSettings)), right: right,
			steps: configured(), finds: change, verdict: finding.Wrong,
		}, {
			name: "sets the text only on create", wrong: parts(createOr(newMainPage, leaveAsIs)), right: parts(applyOnlyPage),
			steps: alone(), finds: []faults.Kind{faults.Transition}, verdict: finding.Wrong,
		}, {
			name: "cuts names", wrong: parts(applyNamed(cutName)), right: parts(applyNamed(hashedName)),
			steps: alone(), finds: similar, verdict: finding.Wrong,
		}, {
			name: "cuts names, and takes what exists for its own", wrong: parts(createNamed(cutName)), right: parts(applyNamed(hashedName)),
			steps: alone(), finds: similar, verdict: finding.Wrong, values: map[string][]any{"spec.text": nil},
		}, {
			name: "cuts names, and logs that others own the child", wrong: parts(claimNamed(cutName)), right: parts(refuseLongNames),
			steps: alone(), finds: similar, verdict: finding.Wrong,
		}, {
			name: "makes dots to hyphens", wrong: parts(createNamed(flatName)), right: parts(applyLongPage),
			steps: alone(), finds: similar, verdict: finding.Wrong,
		}, {
			name: "deletes by the beginning of a name", wrong: unwatchedCleaning(deletePagesByPrefix), right: cleaningUp(applyLongPage, deleteLongPage),
			steps: alone(), finds: similar, verdict: finding.BreaksRule,
		},
		{
			name: "gives up when a quota is full", wrong: parts(giveUpOnRefusal), right: parts(applyMainPage),
			steps: alone(), finds: []faults.Kind{faults.QuotaFull}, verdict: finding.NeedsRestart,
		}, {
			name: "runs an expired Job again", wrong: runningJobs(applyJob), right: runningJobs(applyJobOnce),
			steps: alone(), finds: []faults.Kind{faults.JobExpired}, verdict: finding.Destroyed,
		}, {
			name: "keeps an evicted Pod", wrong: servingPods(applyPod), right: servingPods(replaceEvicted),
			steps: alone(), finds: []faults.Kind{faults.PodEvicted}, verdict: finding.Wrong,
		}, {
			name: "changes the declared state of its objects", wrong: resizingSites, right: parts(applyMainPage),
			steps: []finding.Step{applying("web", SiteSpec{Size: 2}), deleting("web")}, finds: []faults.Kind{faults.GitOps}, verdict: finding.ChangesAtRest,
		}, {
			name: "copies all annotations to its children", wrong: parts(applyWithAnnotations), right: parts(applyMainPage),
			steps: alone(), finds: []faults.Kind{faults.KubectlApply}, verdict: finding.Wrong,
		},
	}
}

// An exploration finds what users do to an operator that is not made for that, and nothing in its right twin.
func TestExploreUsers(t *testing.T) {
	explorePairs(t, usersTwins(), "does not watch its settings", forgetDetection, requireNothing)
}
