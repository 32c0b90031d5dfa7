package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// A task is a function beside the controllers of a program. With leader election, only the leader runs it. It reads
// through the cache of the program, and declares what it needs.
func ExampleTask() {
	report := operator.Task("report", func(ctx context.Context, rt *controller.Runtime) error {
		namespaces, err := kube.List[corev1.Namespace](ctx, rt.CachedClient(), "")
		if err != nil {
			return err
		}
		fmt.Println("namespaces:", len(namespaces))
		return errors.New("that is all") // an error ends the program, and nil ends the task alone
	}, controller.Reads[corev1.Namespace](wire.VerbList))

	client := fakeserver.New().Client() // an API server in memory; operator.Main(report) is a whole program
	fmt.Println(operator.Run(context.Background(), client, report))
	// Output:
	// namespaces: 0
	// the task report: that is all
}

// A part of an author's own: it serves requests on every replica. Needs says what it requires from the cluster.
type feed struct{ namespace string }

// Needs returns the permissions of the part.
func (f feed) Needs() (kube.Needs, error) {
	nodes, err := kube.ResourceOf[corev1.Node]()
	return kube.Needs{
		EveryReplica: true,
		Access:       []kube.Access{{Resource: nodes, Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch}}},
		Rules:        []kube.PolicyRule{{NonResourceURLs: []string{"/version"}, Verbs: []string{"get"}}},
	}, err
}

// Start runs the part until ctx ends.
func (f feed) Start(ctx context.Context, rt *controller.Runtime) error {
	if err := rt.WaitElected(ctx); err != nil { // what follows is for the leader alone
		return nil //nolint:nilerr // the end of ctx is no error
	}
	fmt.Println("feeding", f.namespace)
	return nil
}

// Parts of an author's own run beside controllers.
func ExamplePart() {
	var part operator.Part = feed{"shop"}
	needs, err := part.Needs()
	fmt.Println(needs.Access[0].Resource, err)
	everywhere := operator.OnEveryReplica(operator.Task("warm up", func(context.Context, *controller.Runtime) error {
		fmt.Println("on every replica")
		return nil
	}))
	client := fakeserver.New().Client()
	for _, each := range []operator.Part{part, everywhere} {
		if err := operator.Run(context.Background(), client, each); err != nil {
			fmt.Println(err)
		}
	}
	_ = part.Start
	// Output:
	// nodes <nil>
	// feeding shop
	// on every replica
}

// A program mounts a ConfigMap: the ConfigMap is added to its manifests, and the Deployment gets a variable. Its log goes to
// a handler of its own, with the object of each reconcile.
func ExampleAddManifest() {
	program := operator.Program{
		Parts: func() ([]operator.Part, error) { return []operator.Part{feed{"shop"}}, nil },
		Log:   operator.LogHandler(slog.NewJSONHandler(io.Discard, nil)),
		Manifests: func(m *operator.Manifests) error {
			err := operator.AddManifest(m, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "rules", Namespace: m.Namespace}, Data: map[string]string{"rules": "none"},
			})
			if err != nil {
				return err
			}
			return operator.EditManifest(m, func(d *appsv1.Deployment) {
				container := &d.Spec.Template.Spec.Containers[0]
				container.Env = append(container.Env, corev1.EnvVar{Name: "RULES", Value: "/etc/rules"})
			})
		},
	}
	_ = program.Main
}
