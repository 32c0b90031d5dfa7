package gitops

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/cli-utils/pkg/apply"
	"sigs.k8s.io/cli-utils/pkg/apply/event"
	"sigs.k8s.io/cli-utils/pkg/common"
	"sigs.k8s.io/cli-utils/pkg/inventory"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/yare-go/yare/lab/helm/internal/site"
)

// patience is how long an installer may take for each step.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // the watches of Argo CD's engine log without end after their API server has ended
	log.SetLogger(logr.Discard())
	m.Run()
}

// installer installs objects, and removes them.
type installer interface {
	install(ctx context.Context, objects []*unstructured.Unstructured) error
	remove(ctx context.Context, objects []*unstructured.Unstructured) error
}

// cronJobSite is a site with the program CronJob.
type cronJobSite struct {
	*site.Site
	program string
	config  *rest.Config
}

func newSite(t *testing.T) *cronJobSite {
	t.Helper()
	s := &cronJobSite{Site: site.New(t), program: site.Build(t, "cronjob")}
	var err error
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	return s
}

// objects returns what the command manifests prints.
func (s *cronJobSite) objects(t *testing.T, flags ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	args := []string{"manifests", "--image", site.Image, "--namespace", site.Namespace, "--name-prefix", site.Release}
	for _, o := range site.Parse(t, site.Run(t, s.program, append(args, flags...)...)) {
		objects = append(objects, &unstructured.Unstructured{Object: o})
	}
	return objects
}

// The table of administration.md: the objects are deleted, and then each installer removes all that it has installed. The
// next installer finds nothing in its way.
func TestInstallersRemoveEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, way := range []struct {
		name string
		new  func(*testing.T, *cronJobSite) installer
	}{
		{"Flux", newFlux}, {"Argo CD", newArgo}, {"cli-utils", newCLIUtils},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		objects, installer := s.objects(t), way.new(t, s)
		if err := installer.install(ctx, objects); err != nil {
			t.Fatalf("%s: %v", way.name, err)
		}
		s.Start(s.program)
		s.MustServe()
		s.DeleteObjects()
		if err := installer.remove(ctx, objects); err != nil {
			t.Fatalf("%s: %v", way.name, err)
		}
		s.End()
		s.MustRemoveEverything(s.program)
		t.Logf("%s: %s", way.name, time.Since(began).Round(100*time.Millisecond))
		if cancel(); t.Failed() {
			return
		}
	}
}

// flux is the library by which Flux applies a Kustomization with prune.
type flux struct{ *ssa.ResourceManager }

func newFlux(t *testing.T, s *cronJobSite) installer {
	t.Helper()
	c, err := client.New(s.config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return flux{ssa.NewResourceManager(c, polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{}),
		ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})}
}

func (f flux) install(ctx context.Context, objects []*unstructured.Unstructured) error {
	f.SetOwnerLabels(objects, site.Release, "flux-system")
	_, err := f.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	return err
}

func (f flux) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = f.GetOwnerLabels(site.Release, "flux-system")
	deleted, err := f.DeleteAll(ctx, objects, options)
	if err != nil {
		return err
	}
	return f.WaitForSetTermination(deleted, ssa.WaitOptions{Interval: time.Second, Timeout: patience})
}

// cliUtils is the library below kpt and others. It keeps an inventory of what it has applied.
type cliUtils struct {
	applier   *apply.Applier
	destroyer *apply.Destroyer
	inventory inventory.Info
}

func newCLIUtils(t *testing.T, s *cronJobSite) installer {
	t.Helper()
	flags, path := genericclioptions.NewConfigFlags(false), s.Kubeconfig()
	flags.KubeConfig = &path
	factory := cmdutil.NewFactory(flags)
	c, err := inventory.ClusterClientFactory{StatusPolicy: inventory.StatusPolicyAll}.NewClient(factory)
	if err != nil {
		t.Fatal(err)
	}
	u := cliUtils{inventory: inventory.WrapInventoryInfoObj(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "inventory", "namespace": "default", "labels": map[string]any{common.InventoryLabel: site.Release},
		},
	}})}
	if u.applier, err = apply.NewApplierBuilder().WithFactory(factory).WithInventoryClient(c).Build(); err != nil {
		t.Fatal(err)
	}
	if u.destroyer, err = apply.NewDestroyerBuilder().WithFactory(factory).WithInventoryClient(c).Build(); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u cliUtils) install(ctx context.Context, objects []*unstructured.Unstructured) error {
	return failure(u.applier.Run(ctx, u.inventory, objects, apply.ApplierOptions{
		ServerSideOptions: common.ServerSideOptions{ServerSideApply: true, FieldManager: "kpt"},
		ReconcileTimeout:  patience,
	}))
}

func (u cliUtils) remove(ctx context.Context, _ []*unstructured.Unstructured) error {
	return failure(u.destroyer.Run(ctx, u.inventory, apply.DestroyerOptions{
		DeleteTimeout: patience, DeletePropagationPolicy: apimeta.DeletePropagationBackground,
	}))
}

// failure returns the first failure among the events.
func failure(events <-chan event.Event) (err error) {
	for e := range events {
		var failed bool
		switch e.Type {
		case event.ErrorType, event.ValidationType:
			failed = true
		case event.ApplyType:
			failed = e.ApplyEvent.Status == event.ApplyFailed
		case event.DeleteType:
			failed = e.DeleteEvent.Status != event.DeleteSuccessful && e.DeleteEvent.Status != event.DeletePending
		case event.WaitType:
			failed = e.WaitEvent.Status == event.ReconcileFailed || e.WaitEvent.Status == event.ReconcileTimeout
		}
		if failed && err == nil {
			err = fmt.Errorf("%s", e)
		}
	}
	return err
}
