package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/bench/internal/loopback"
	"github.com/yare-go/yare/bench/internal/workload"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
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
	counter, err := newRequestCounter(b.cluster.plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	server, err := loopback.Start(b.dir, counter)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	running, err := start(p, server.Kubeconfig(), "webapps")
	if err != nil {
		return nil, err
	}
	defer running.kill()
	limit, cancel := context.WithTimeout(ctx, patience)
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
	if err := clock.SleepReal(ctx, soon); err != nil {
		return nil, err
	}
	cpu10, err := running.measureMemory(f, "")
	if err != nil {
		return nil, err
	}
	f["cpu10"] = cpu10.Seconds()
	f["requests"], f["writes"] = float64(counter.requests.Load()), float64(counter.writes.Load())
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

// requestCounter passes requests on to an API server, and counts them.
type requestCounter struct {
	forward          *httputil.ReverseProxy
	requests, writes atomic.Int64
}

// newRequestCounter returns a counter in front of the server of a kubeconfig.
func newRequestCounter(kubeconfig string) (*requestCounter, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	return &requestCounter{forward: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization") // the transport has the rights
		},
		Transport:     transport,
		FlushInterval: -1, // watches
		// A program that is killed leaves requests behind.
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.Printf("passing on %s %s: %v", r.Method, r.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}}, nil
}

// ServeHTTP passes on a request.
func (c *requestCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.writes.Add(1)
	}
	c.forward.ServeHTTP(w, r)
}
