package faults

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// The kinds of what the tools of users do with the samples when the step has come to rest.
const (
	// GitOps applies the samples again and again by server-side apply as another field manager, and forces conflicts, as a
	// tool does that keeps a cluster as a repository has it. The program must not change the samples back.
	GitOps Kind = "gitops"
	// KubectlApply annotates the samples as kubectl apply does without --server-side. The annotation concerns the samples
	// only.
	KubectlApply Kind = "kubectl-apply"
)

const (
	// gitOpsManager is the field manager of [GitOps]. Its name begins with the name of [ForeignManager].
	gitOpsManager = ForeignManager + "-gitops"
	// maxReleases is how often the tool tries to end its ownership of an object that somebody changes meanwhile.
	maxReleases = 5
	// lastAppliedAnnotation is the annotation of kubectl apply: see
	// https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-last-applied-configuration.
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

// tools is the family of the tools of users.
type tools struct{ baseFamily }

func (tools) Describe() Description {
	return Description{Group: "tools", Kinds: []Kind{GitOps, KubectlApply}, IsDefault: true}
}

// Plan plans one run for each kind, after the first step.
func (tools) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	var all []Fault
	for _, k := range in.planned(GitOps, KubectlApply) {
		if len(in.SampleContents) > 0 {
			all = append(all, Fault{Kind: k})
		}
	}
	return newPlan(all), nil
}

// AfterStep applies or annotates the samples.
func (t tools) AfterStep(ctx context.Context, run *Run, f Fault) error {
	run.RecordFault(ByUser, f.String())
	if f.Kind == KubectlApply {
		return t.annotate(ctx, run)
	}
	if err := t.apply(ctx, run); err != nil {
		return err
	}
	if err := run.WaitForRest(ctx); err != nil {
		return err
	}
	// The samples are as the tool wants them, so the second apply changes nothing.
	if err := run.ExpectNoChange(ctx, func() error { return t.apply(ctx, run) }); err != nil {
		return err
	}
	return t.release(ctx, run)
}

// apply applies the samples as the tool.
func (tools) apply(ctx context.Context, run *Run) error {
	return forEachSample(run, func(sample *unstructured.Unstructured, api kube.API[unstructured.Unstructured]) error {
		_, err := api.For(run.Client().WithFieldManager(gitOpsManager), run.Namespace).Apply(ctx, sample)
		return err
	})
}

// release ends the ownership of the tool. Otherwise a field would stay that the user removes in a later step, because a
// field stays as long as one of its owners applies the field. The user applies the samples before, because the tool has
// taken each field whose value was not that of the sample. Example: a webhook has changed the text "hello" to "hello!".
// The apply of the tool changes the text to "hello", and the webhook changes it again. Then only the tool owns the
// text.
func (tools) release(ctx context.Context, run *Run) error {
	return forEachSample(run, func(sample *unstructured.Unstructured, api kube.API[unstructured.Unstructured]) error {
		if _, err := api.Apply(ctx, sample.DeepCopy()); err != nil {
			return err
		}
		for tries := 1; ; tries++ {
			live, err := api.Get(ctx, sample.GetName())
			if err != nil {
				return kube.IgnoreNotFound(err)
			}
			bare := &unstructured.Unstructured{}
			bare.SetGroupVersionKind(sample.GroupVersionKind())
			bare.SetNamespace(run.Namespace)
			bare.SetName(sample.GetName())
			bare.SetUID(live.GetUID())
			bare.SetResourceVersion(live.GetResourceVersion()) // with the UID alone, the apply might create an object
			_, err = api.For(run.Client().WithFieldManager(gitOpsManager), run.Namespace).Apply(ctx, bare)
			if !kube.IsConflict(err) || tries == maxReleases {
				return err
			}
		}
	})
}

// annotate sets the annotation of kubectl apply.
func (tools) annotate(ctx context.Context, run *Run) error {
	return forEachSample(run, func(sample *unstructured.Unstructured, api kube.API[unstructured.Unstructured]) error {
		text, err := json.Marshal(sample.Object)
		if err != nil {
			return err
		}
		patch := map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{lastAppliedAnnotation: string(text) + "\n"}},
		}
		_, err = api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace).Patch(ctx,
			sample.GetName(), kube.MergePatch(patch))
		return kube.IgnoreNotFound(err)
	})
}

// forEachSample calls work for each object that the user applies in the first step.
func forEachSample(run *Run, work func(*unstructured.Unstructured, kube.API[unstructured.Unstructured]) error) error {
	for _, raw := range run.SampleContents {
		sample := &unstructured.Unstructured{}
		if err := sample.UnmarshalJSON(raw); err != nil {
			return err
		}
		sample.SetNamespace(run.Namespace)
		api, err := run.APIOf(sample.GroupVersionKind(), run.Namespace)
		if err != nil {
			return err
		}
		if err := work(sample, api); err != nil {
			return err
		}
	}
	return nil
}
