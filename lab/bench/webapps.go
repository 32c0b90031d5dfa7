package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// webAppNamespace is the namespace of the WebApps.
const webAppNamespace = "webapps"

// applyWebApps lets each program run the WebApp operator until all WebApps are ready. The WebApps
// are new for each program.
func applyWebApps(ctx context.Context, b *bench, r row, programs []*program, _ int) (map[string]figures, error) {
	// WebApps have two replicas on average, and a simulated node takes 110 Pods.
	if err := b.useCluster(ctx, "webapps", r.objects/40+1); err != nil {
		return nil, err
	}
	all := make(map[string]figures)
	for _, p := range programs {
		f, err := runWebApps(ctx, b, p, r.objects)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all[p.name] = f
	}
	return all, nil
}

func runWebApps(ctx context.Context, b *bench, p *program, n int) (figures, error) {
	apps := kube.Namespaced[workload.WebApp](b.cluster.client, webAppNamespace)
	err := inParallel(n, func(i int) error {
		_, err := apps.Create(ctx, workload.NewWebApp(webAppNamespace, i))
		return err
	})
	if err != nil {
		return nil, err
	}
	config, err := loadConfig(b.cluster.plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	counter, err := proxy.New(proxy.Options{Target: config})
	if err != nil {
		return nil, err
	}
	defer counter.Close()
	session, err := counter.NewSession(p.name)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(b.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, session.Kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	running, err := start(p, kubeconfig, "webapps")
	if err != nil {
		return nil, err
	}
	defer running.kill()
	limit, cancel := context.WithTimeout(ctx, maxStepTime)
	defer cancel()
	err = waitForAll(limit, apps, n, func(app *workload.WebApp) bool { return app.Status.Ready })
	if err != nil {
		return nil, fmt.Errorf("WebApps: %w\n%s", err, running.log)
	}
	ready := time.Now()
	cpu, err := processorTime(running.process.Pid())
	if err != nil {
		return nil, err
	}
	f := figures{"ready": ready.Sub(running.started).Seconds(), "cpu": cpu.Seconds()}
	// Activity that comes to rest within ten seconds belongs to the work.
	if err := clock.SleepReal(ctx, memoryDelay); err != nil {
		return nil, err
	}
	cpu10, err := running.measureMemory(f, "")
	if err != nil {
		return nil, err
	}
	f["cpu10"] = cpu10.Seconds()
	for _, r := range counter.Requests() {
		f["requests"]++
		if r.Point.IsWrite() {
			f["writes"]++
		}
	}
	running.kill()
	return f, b.cluster.deleteWebApps(ctx)
}

// deleteWebApps deletes all WebApps, and waits until nothing is left of them.
func (c *cluster) deleteWebApps(ctx context.Context) error {
	apps := kube.Namespaced[workload.WebApp](c.client, webAppNamespace)
	deployments := kube.Namespaced[appsv1.Deployment](c.client, webAppNamespace)
	pods := kube.Namespaced[corev1.Pod](c.client, webAppNamespace)
	if err := apps.DeleteAll(ctx, []kube.Selector{kube.Everything()}); err != nil {
		return err
	}
	for range 600 {
		rest, err := countObjects(ctx, apps)
		if err == nil && rest == 0 {
			rest, err = countObjects(ctx, deployments)
		}
		if err == nil && rest == 0 {
			rest, err = countObjects(ctx, pods)
		}
		if err != nil || rest == 0 {
			return err
		}
		if err := clock.SleepReal(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("objects of the last round are left in the namespace %s", webAppNamespace)
}

func countObjects[T any](ctx context.Context, api kube.API[T]) (int, error) {
	objects, err := api.List(ctx)
	return len(objects), err
}
