// Package bench measures a whole operator beside an operator that does the same work with
// controller-runtime. Both are programs of their own. They run one after the other against one
// real API server with the same varied objects.
//
//	go test ./bench -run '^$' -bench . -benchtime 3x -timeout 30m
//
// The first run downloads and compiles controller-runtime, which takes minutes.
//
// The machine should be idle otherwise. Processor time and bytes are the program's own. Wall
// time is mostly the API server's.
package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/bench/shop"
	"github.com/yare-go/yare/bench/tally"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

func BenchmarkShops(b *testing.B) {
	for _, count := range []int{1, 10_000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			cluster := yaretest.New(b)
			defined, err := kube.TypeOf[shop.Shop]()
			if err != nil {
				b.Fatal(err)
			}
			cluster.Define(b, defined)
			namespace := cluster.Namespace(b)
			client := cluster.Client(b).WithFieldManager("gitops")
			inParallel(b, count, func(i int) error {
				s := shop.New(namespace, i)
				status := s.Status
				made, err := kube.Apply(b.Context(), client, s)
				if err != nil {
					return err
				}
				made.Status = status
				return client.WithFieldManager("shop-operator").ApplyStatus(b.Context(), made)
			})
			measure(b, cluster, count, "Shop")
		})
	}
}

func BenchmarkPods(b *testing.B) {
	const count = 5000
	cluster := yaretest.New(b, yaretest.Nodes(64))
	namespace := cluster.Namespace(b)
	client := cluster.Client(b)
	pods := kube.Namespaced[corev1.Pod](client, namespace)
	inParallel(b, count, func(i int) error {
		s := shop.New(namespace, i)
		p := &corev1.Pod{ObjectMeta: s.ObjectMeta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: s.Spec.Image}}}}
		for _, v := range s.Spec.Env {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
		}
		_, err := pods.Create(b.Context(), p)
		return err
	})
	for i := range count {
		yaretest.WaitForCondition(b, pods, shop.New(namespace, i).Name, "Ready")
	}
	measure(b, cluster, count, "Pod")
}

// inParallel calls f for each of count objects, eight at a time.
func inParallel(b *testing.B, count int, f func(i int) error) {
	b.Helper()
	var working sync.WaitGroup
	for w := range 8 {
		working.Go(func() {
			for i := w; i < count; i += 8 {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// measure runs the operator and its peer, one after the other, and reports their figures.
func measure(b *testing.B, cluster *yaretest.Cluster, count int, kind string) {
	b.Helper()
	b.Setenv("BENCH_OBJECTS", strconv.Itoa(count))
	b.Setenv("BENCH_KIND", kind)
	for _, folder := range []string{"operator", "controllerruntime"} {
		program := yaretest.Build(b, folder)
		b.Run(folder, func(b *testing.B) {
			var runs float64
			var sum tally.Figures
			for b.Loop() {
				f := figures(b, cluster, program)
				runs++
				sum.First += f.First
				sum.All += f.All
				sum.CPU += f.CPU
				sum.Heap += f.Heap
				sum.Resident += f.Resident
				sum.Anonymous += f.Anonymous
			}
			b.ReportMetric(sum.First/runs, "s-to-first")
			b.ReportMetric(sum.All/runs, "s-to-all")
			b.ReportMetric(sum.CPU/runs, "cpu-s")
			b.ReportMetric(float64(sum.Heap)/runs/float64(count), "heap-B/object")
			b.ReportMetric(sum.Resident/runs, "rss-MB")
			b.ReportMetric(sum.Anonymous/runs, "anon-MB")
		})
	}
}

// figures returns the figures of one run of a program.
func figures(b *testing.B, cluster *yaretest.Cluster, program string) tally.Figures {
	b.Helper()
	p := cluster.Run(b, program)
	defer p.Kill()
	var f tally.Figures
	yaretest.Eventually(b, func() error {
		lines := p.Lines()
		if len(lines) == 0 {
			return fmt.Errorf("no figures yet")
		}
		return json.Unmarshal([]byte(lines[0]), &f)
	})
	return f
}
