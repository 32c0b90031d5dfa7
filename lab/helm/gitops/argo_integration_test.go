package gitops

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/lab/helm/internal/site"
	"github.com/yare-go/yare/yaretest"
)

// tracking is the annotation by which Argo CD knows its objects.
const tracking = "argocd.argoproj.io/tracking-id"

// manager is the field manager of Argo CD.
const manager = "argocd-controller"

// argo is the engine of Argo CD.
type argo struct {
	engine.GitOpsEngine
	cache   cache.ClusterCache
	options []sync.SyncOpt
}

func newArgo(t *testing.T, s *cronJobSite) installer {
	t.Helper()
	mark := cache.SetPopulateResourceInfoHandler(func(o *unstructured.Unstructured, _ bool) (any, bool) {
		mark := o.GetAnnotations()[tracking]
		return mark, mark != ""
	})
	a := argo{
		cache:   cache.NewClusterCache(s.config, cache.SetLogr(logr.Discard()), mark),
		options: []sync.SyncOpt{sync.WithPrune(true), sync.WithLogr(logr.Discard())},
	}
	a.GitOpsEngine = engine.NewEngine(s.config, a.cache, engine.WithLogr(logr.Discard()))
	// The function that Run returns empties the cache, and then the watches of definitions that go away panic. So they
	// run until the process ends.
	if _, err := a.Run(); err != nil {
		t.Fatal(err)
	}
	return a
}

// isManaged reports whether the engine has applied an object. The ReplicaSet of a Deployment has the annotation of the
// Deployment.
func isManaged(r *cache.Resource) bool { return r.Info == id(r.ResourceKey()) }

func id(key kube.ResourceKey) string { return key.String() }

func (a argo) install(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = make(map[string]string)
		}
		annotations[tracking] = id(kube.GetResourceKey(o))
		o.SetAnnotations(annotations)
	}
	return a.sync(ctx, objects)
}

func (a argo) remove(ctx context.Context, _ []*unstructured.Unstructured) error {
	return a.sync(ctx, nil)
}

func (a argo) sync(ctx context.Context, objects []*unstructured.Unstructured) error {
	results, err := a.Sync(ctx, objects, isManaged, "1", site.Namespace, a.options...)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Status != common.ResultCodeSynced && r.Status != common.ResultCodePruned {
			return fmt.Errorf("%s: %s: %s", r.ResourceKey, r.Status, r.Message)
		}
	}
	return nil
}

// Argo CD's engine finds no difference between what is printed and a program at rest, by each of its comparisons, without
// ignoreDifferences. No object is degraded. A further sync leaves what the program has written.
func TestArgoFindsNoDifference(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, way := range []struct {
		serverSide bool
		flags      []string
	}{
		{true, []string{"--webhook-entries", "--volume=emptydir=/cache", "--pod-label=team=platform"}},
		{false, nil},
		{false, []string{"--webhook-entries", "--network-policy", "--replicas=1", "--memory-limit=256Mi"}},
	} {
		objects, a := s.objects(t, way.flags...), newArgo(t, s).(argo)
		a.options = append(a.options, sync.WithServerSideApply(way.serverSide), sync.WithServerSideApplyManager(manager))
		if err := a.install(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
		s.Start(s.program)
		s.MustServe()
		s.mustBeInSync(t, a, objects)
		if err := a.sync(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
		s.MustServe()
		s.mustBeInSync(t, a, objects)
		s.DeleteObjects()
		if err := a.remove(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.End()
		s.MustRemoveEverything(s.program)
	}
}

// mustBeInSync fails the test if the engine finds a difference, or an object that is degraded.
func (s *cronJobSite) mustBeInSync(t *testing.T, a argo, objects []*unstructured.Unstructured) {
	t.Helper()
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	applier, stop, err := kubectl.ManageServerSideDiffDryRuns(s.config)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, parser, err := kubectl.LoadOpenAPISchema(s.config)
	if err != nil {
		t.Fatal(err)
	}
	merging := []diff.Option{diff.WithLogr(logr.Discard()), diff.WithManager(manager), diff.WithGVKParser(parser)}
	comparisons := map[string][]diff.Option{
		"three-way": merging[:1],
		"merge":     append(slices.Clip(merging), diff.WithStructuredMergeDiff(true)),
		"server-side": append(slices.Clip(merging), diff.WithServerSideDiff(true),
			diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier))),
	}
	yaretest.Eventually(t, func() error { // the cache of the engine is behind the cluster
		live, err := a.cache.GetManagedLiveObjs(objects, isManaged)
		if err != nil {
			return err
		}
		for _, o := range objects {
			key := kube.GetResourceKey(o)
			if live[key] == nil {
				return fmt.Errorf("%s is missing", key)
			}
			if !hasWritten(live[key]) {
				return fmt.Errorf("%s lacks what the program writes", key)
			}
			other := o.DeepCopy()
			other.SetLabels(map[string]string{"other": "label"})
			for name, options := range comparisons {
				if result, err := diff.Diff(other, live[key].DeepCopy(), options...); err != nil || !result.Modified {
					return fmt.Errorf("%s, %s: no difference to other labels: %w", key, name, err)
				}
				result, err := diff.Diff(o.DeepCopy(), live[key].DeepCopy(), options...)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", key, name, err)
				}
				if result.Modified {
					return fmt.Errorf("%s, %s: the engine would make\n%s\nof\n%s",
						key, name, result.PredictedLive, result.NormalizedLive)
				}
			}
			h, err := health.GetResourceHealth(live[key], nil)
			if err != nil || h != nil && h.Status == health.HealthStatusDegraded {
				return fmt.Errorf("%s has the health %v: %w", key, h, err)
			}
		}
		return nil
	})
}

// hasWritten reports whether an object has what the program writes into an object of its kind.
func hasWritten(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		return len(webhooks) > 0 && !slices.ContainsFunc(webhooks, func(w any) bool {
			bundle, _, _ := unstructured.NestedString(w.(map[string]any), "clientConfig", "caBundle")
			return bundle == ""
		})
	case "CustomResourceDefinition":
		bundle, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		return bundle != ""
	case "Secret":
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		return len(data) > 0
	}
	return true
}
