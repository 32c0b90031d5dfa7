package workload

import corev1 "k8s.io/api/core/v1"

// NewPod returns the i-th Pod. Its name ends in i. A Pod that runs has 4 to 5 KB.
func NewPod(i int) *corev1.Pod {
	s := NewShop(i)
	main := corev1.Container{Name: "main", Image: s.Spec.Image}
	for _, v := range s.Spec.Env {
		main.Env = append(main.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	return &corev1.Pod{ObjectMeta: s.ObjectMeta, Spec: corev1.PodSpec{Containers: []corev1.Container{main}}}
}
