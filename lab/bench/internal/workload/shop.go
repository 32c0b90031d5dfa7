// Package workload has the objects of the comparison. Their names, images, counts and optional
// parts vary as in a real cluster. Equal arguments give equal objects.
package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// ShopSpec is the desired state of a Shop.
type ShopSpec struct {
	Image    string            `json:"image"`
	Replicas int32             `json:"replicas"`
	Host     string            `json:"host"`
	Env      []Variable        `json:"env,omitempty" crd:"listType=map,listMapKey=name"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// Variable is one variable of the environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ShopStatus is the observed state of a Shop.
type ShopStatus struct {
	AvailableReplicas int32              `json:"availableReplicas"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

// Definition returns the definition of the resource.
func (ShopSpec) Definition() kube.Definition {
	return kube.Definition{Group: "bench.example.com", Version: "v1", Kind: "Shop"}
}

// Shop is the custom resource of most rows. A Shop has 1.4 to 2 KB.
type Shop = kube.CustomResource[ShopSpec, ShopStatus]

// Namespaces returns the names of the namespaces that Shops and Pods are in.
func Namespaces() []string {
	var all []string
	for _, team := range teams() {
		for _, stage := range stages() {
			all = append(all, team+"-"+stage)
		}
	}
	return all
}

func teams() []string {
	return []string{"payments", "search", "identity", "growth", "logistics", "platform", "data", "mobile"}
}

func stages() []string { return []string{"dev", "staging", "production"} }

// NewShop returns the i-th Shop. Its name ends in i.
func NewShop(i int) *Shop {
	random := rand.New(rand.NewPCG(uint64(i), 7))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	letters := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = "bcdfghjklmnpqrstvwxz2456789"[random.IntN(27)]
		}
		return string(text)
	}
	team := pick(teams()...)
	name := fmt.Sprintf("%s-%s-%d", team, pick("shop", "blog", "docs", "admin", "status"), i)
	s := &Shop{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team + "-" + pick(stages()...), Name: name,
			Labels: map[string]string{
				"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": pick("argocd", "flux", "helm"), "team": team,
				"tier": pick("front", "back"),
			},
			Annotations: map[string]string{
				"example.com/contact": letters(6) + "@example.com", "example.com/checksum": letters(32),
			},
		},
		Spec: ShopSpec{
			Image: fmt.Sprintf("registry.example.com/%s/%s:%d.%d.%d",
				team, pick("api", "web", "worker", "cron"), random.IntN(4), random.IntN(30), random.IntN(9)),
			Replicas: 1 + random.Int32N(9),
			Host:     name + ".apps.example.com",
			Env:      []Variable{{"LOG_LEVEL", pick("debug", "info", "warn")}},
		},
	}
	for _, name := range []string{"DB_HOST", "CACHE_HOST", "QUEUE_USER", "API_KEY_NAME"}[:random.IntN(5)] {
		s.Spec.Env = append(s.Spec.Env, Variable{name, letters(8 + random.IntN(12))})
	}
	if random.IntN(2) == 0 {
		s.Spec.Limits = map[string]string{
			"cpu": fmt.Sprint(50*(1+random.IntN(20)), "m"), "memory": fmt.Sprint(64*(1+random.IntN(16)), "Mi"),
		}
	}
	s.Status.AvailableReplicas = s.Spec.Replicas
	kube.SetCondition(context.Background(), &s.Status.Conditions, s, "Ready", random.IntN(4) > 0, "Reconciled",
		fmt.Sprintf("%d of %d replicas are available", s.Spec.Replicas, s.Spec.Replicas))
	return s
}

// Create applies the i-th Shop and its status, as two field managers.
func Create(ctx context.Context, client *kube.Client, i int) error {
	return create(ctx, client, "gitops", "shop-operator", NewShop(i))
}

// create applies an object as one field manager, and its status as another one.
func create[S kube.Defined, T any](
	ctx context.Context, client *kube.Client, manager, statusManager string, o *kube.CustomResource[S, T],
) error {
	status := o.Status
	made, err := kube.Apply(ctx, client.WithFieldManager(manager), o)
	if err != nil {
		return err
	}
	made.Status = status
	return client.WithFieldManager(statusManager).ApplyStatus(ctx, made)
}

// NewPod returns the i-th Pod. Its name ends in i. A Pod that runs has 4 to 5 KB.
func NewPod(i int) *corev1.Pod {
	s := NewShop(i)
	main := corev1.Container{Name: "main", Image: s.Spec.Image}
	for _, v := range s.Spec.Env {
		main.Env = append(main.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	return &corev1.Pod{ObjectMeta: s.ObjectMeta, Spec: corev1.PodSpec{Containers: []corev1.Container{main}}}
}
