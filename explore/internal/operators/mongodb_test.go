package public

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// The MongoDB operator leaves the same objects under each fault. Its metrics have a fixed port on all addresses,
// and no option for it. So the linker sets the default of its library, to any port of the loopback address.
func TestMongoDBOperator(t *testing.T) {
	const folder, module = "mongodboperator", "github.com/mongodb/mongodb-kubernetes-operator"
	budget := budgetOf(t)
	simulateAgents(t, yaretest.Shared(t))
	explore.Run(t, explore.Binary{
		Path: compile(t, folder, module+"/cmd/manager",
			"-ldflags=-X sigs.k8s.io/controller-runtime/pkg/metrics.DefaultBindAddress=127.0.0.1:0"),
		Env: []string{
			"WATCH_NAMESPACE={namespace}",
			"AGENT_IMAGE=agent", "VERSION_UPGRADE_HOOK_IMAGE=hook", "READINESS_PROBE_IMAGE=probe",
		},
		Install: []string{filepath.Join(sourceOf(t, folder, module), "config", "crd", "bases")},
	}, explore.Settings{SampleFile: filepath.Join(folder, "sample.yaml"), Budget: budget})
}

// simulateAgents does for the Pods of all namespaces, until the test ends, what the agent in each Pod of a
// database does: it annotates the Pod with the version of the configuration that it has reached.
func simulateAgents(t *testing.T, cluster *yaretest.Cluster) {
	client := cluster.Client(t).WithFieldManager("yare-simulated-agent")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			pods, _ := kube.Everywhere[corev1.Pod](client).List(ctx) // what fails is tried again
			for _, pod := range pods {
				simulateAgent(ctx, client, pod)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// simulateAgent does what the agent in a Pod does, if there is one. What fails is tried again soon.
func simulateAgent(ctx context.Context, client *kube.Client, pod *corev1.Pod) {
	isAgent := func(c corev1.Container) bool { return c.Name == "mongodb-agent" }
	end := strings.LastIndex(pod.Name, "-")
	if end < 0 || !slices.ContainsFunc(pod.Spec.Containers, isAgent) {
		return
	}
	secret, err := kube.Namespaced[corev1.Secret](client, pod.Namespace).Get(ctx, pod.Name[:end]+"-config")
	if err != nil {
		return
	}
	var config struct{ Version int }
	if json.Unmarshal(secret.Data["cluster-config.json"], &config) != nil {
		return
	}
	const annotation = "agent.mongodb.com/version"
	if version := strconv.Itoa(config.Version); pod.Annotations[annotation] != version {
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: version}}}
		_, _ = kube.Namespaced[corev1.Pod](client, pod.Namespace).Patch(ctx, pod.Name, kube.MergePatch(patch))
	}
}
