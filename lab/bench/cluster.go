package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/watch"
)

// cluster is a control plane with the custom resources of the comparison.
type cluster struct {
	plane  *plane.Plane
	client *kube.Client
	// shops is the number of Shops that exist.
	shops int
}

// startCluster starts a control plane with a number of simulated nodes.
func startCluster(ctx context.Context, nodes int) (*cluster, error) {
	p, err := plane.Start(ctx, plane.Options{Nodes: nodes, Console: console.New(os.Stderr, "bench")})
	if err != nil {
		return nil, err
	}
	c := &cluster{plane: p}
	if err := c.setUp(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return c, nil
}

// setUp makes the client, the kinds and the namespaces.
func (c *cluster) setUp(ctx context.Context) error {
	config, err := loadConfig(c.plane.Kubeconfig())
	if err != nil {
		return err
	}
	if c.client, err = kube.NewClient(config); err != nil {
		return err
	}
	if err := c.define(ctx); err != nil {
		return err
	}
	for _, name := range append(workload.Namespaces(), webAppNamespace) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := kube.Everywhere[corev1.Namespace](c.client).Create(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// define applies the definitions of the custom resources, and waits until they are served.
func (c *cluster) define(ctx context.Context) error {
	shop, err := kube.TypeOf[workload.Shop]()
	if err != nil {
		return err
	}
	webApp, err := kube.TypeOf[workload.WebApp]()
	if err != nil {
		return err
	}
	crds, err := crd.From(shop, webApp)
	if err != nil {
		return err
	}
	var manifest strings.Builder
	if err := crd.WriteYAML(&manifest, crds...); err != nil {
		return err
	}
	if err := c.kubectl(ctx, manifest.String(), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	for _, each := range crds {
		err := c.kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+each.Metadata.Name)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) kubectl(ctx context.Context, stdin string, args ...string) error {
	cmd := exec.CommandContext(ctx, c.plane.Binary(),
		append([]string{"kubectl", "--kubeconfig", c.plane.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &errs)
	}
	return nil
}

// fillShops creates Shops until there are n.
func (c *cluster) fillShops(ctx context.Context, n int) error {
	first := c.shops
	if n <= first {
		return nil
	}
	log.Printf("creating %d custom resources", n-first)
	err := inParallel(n-first, func(i int) error { return workload.Create(ctx, c.client, first+i) })
	if err == nil {
		c.shops = n
	}
	return err
}

// fillPods creates n Pods, and waits until all of them are ready.
func (c *cluster) fillPods(ctx context.Context, n int) error {
	log.Printf("creating %d Pods", n)
	pods := kube.Everywhere[corev1.Pod](c.client)
	err := inParallel(n, func(i int) error {
		pod := workload.NewPod(i)
		_, err := kube.Namespaced[corev1.Pod](c.client, pod.Namespace).Create(ctx, pod)
		return err
	})
	if err != nil {
		return err
	}
	log.Printf("waiting for the Pods to be ready")
	return waitForAll(ctx, pods, n, func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

// waitForAll waits until there are n objects that are all ready.
func waitForAll[T any](ctx context.Context, api kube.API[T], n int, ready func(*T) bool) error {
	readyNames := map[string]bool{}
	update := func(t *T) {
		name := api.Object(t).GetName()
		if delete(readyNames, name); ready(t) {
			readyNames[name] = true
		}
	}
	for event, err := range watch.Events(ctx, api) {
		if err != nil {
			log.Printf("watching: %v", err)
			continue
		}
		switch event := event.(type) {
		case watch.Added[T]:
			update(event.Object)
		case watch.Modified[T]:
			update(event.Object)
		}
		if len(readyNames) == n {
			return nil
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%d of %d objects became ready: %w", len(readyNames), n, ctx.Err())
	}
	return errors.New("the watch ended")
}

// inParallel calls f for each of n objects, eight at a time. It stops at the first error.
func inParallel(n int, f func(i int) error) error {
	var working sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, 8)
	for w := range errs {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if errs[w] = f(int(i)); errs[w] != nil {
					next.Store(int64(n))
				}
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// loadConfig returns the configuration of a kubeconfig file.
func loadConfig(kubeconfig string) (*kube.Config, error) {
	config, _, err := kube.ConfigSource{Kubeconfig: kubeconfig}.Load()
	return config, err
}
