package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/watch"
)

// webAppNamespace is the namespace of the WebApps.
const webAppNamespace = "webapps"

// cluster is a control plane with the objects of one kind.
type cluster struct {
	plane  *plane.Plane
	client *kube.Client
	// work is what the programs reconcile, as in [row], and objects is the number of these objects.
	work    string
	objects int
}

// startCluster starts a control plane for a row, with the kinds and the namespaces of the workload.
func startCluster(ctx context.Context, source string, r row) (*cluster, error) {
	nodes := 1
	if r.work == "pods" || r.work == "webapps" {
		// A simulated node takes 110 Pods, and a WebApp has two on average. A control plane has 64 nodes at most.
		nodes = min(nodes+r.objects/40, 64)
	}
	p, err := plane.Start(ctx, plane.Options{Nodes: nodes, Console: console.New(os.Stderr, "bench")})
	if err != nil {
		return nil, err
	}
	c := &cluster{plane: p, work: r.work}
	config, err := loadConfig(p.Kubeconfig())
	if err == nil {
		c.client, err = kube.NewClient(config)
	}
	if err == nil {
		// cluster.yaml has the kinds and the namespaces.
		err = c.kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(source, "cluster.yaml"))
	}
	if err == nil {
		err = c.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) kubectl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.plane.Binary(), append([]string{"kubectl", "--kubeconfig", c.plane.Kubeconfig()}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// fill creates objects until there are n. It waits until Pods are ready.
func (c *cluster) fill(ctx context.Context, n int) error {
	if n > c.objects {
		log.Printf("creating %d %s", n-c.objects, c.work)
	}
	var creating errgroup.Group
	creating.SetLimit(8)
	for ; c.objects < n; c.objects++ {
		i := c.objects
		creating.Go(func() error {
			switch c.work {
			case "shops":
				return workload.Create(ctx, c.client, i)
			case "machines":
				return workload.CreateMachine(ctx, c.client, i)
			case "pods":
				pod := workload.NewPod(i)
				_, err := kube.Namespaced[corev1.Pod](c.client, pod.Namespace).Create(ctx, pod)
				return err
			default:
				_, err := kube.Namespaced[workload.WebApp](c.client, webAppNamespace).
					Create(ctx, workload.NewWebApp(webAppNamespace, i))
				return err
			}
		})
	}
	err := creating.Wait()
	if err != nil || c.work != "pods" {
		return err
	}
	return waitForAll(ctx, kube.Everywhere[corev1.Pod](c.client), n, func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

// deleteWebApps deletes all WebApps and what belongs to them, so that the next program finds none.
func (c *cluster) deleteWebApps(ctx context.Context) error {
	c.objects = 0
	return c.kubectl(ctx, "delete", "webapps,deployments,replicasets,pods", "--all", "-n", webAppNamespace, "--timeout=5m")
}

// waitForAll waits until there are n objects that are all ready. It returns an error if that takes long.
func waitForAll[T any](ctx context.Context, api kube.API[T], n int, isReady func(*T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, maxStepTime)
	defer cancel()
	ready := map[string]bool{}
	for event, err := range watch.Events(ctx, api) {
		var object *T
		switch event := event.(type) {
		case watch.Added[T]:
			object = event.Object
		case watch.Modified[T]:
			object = event.Object
		}
		if err != nil || object == nil {
			continue
		}
		if name := api.Object(object).GetName(); isReady(object) {
			ready[name] = true
		} else {
			delete(ready, name)
		}
		if len(ready) == n {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%d of %d objects became ready", len(ready), n), ctx.Err())
}

// loadConfig returns the configuration of a kubeconfig file.
func loadConfig(kubeconfig string) (*kube.Config, error) {
	config, _, err := kube.ConfigSource{Kubeconfig: kubeconfig}.Load()
	return config, err
}
