package yaretest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

type TicketSpec struct {
	Seats int    `json:"seats"`
	Class string `json:"class,omitempty"`
}

type TicketStatus struct{}

func (TicketSpec) Definition() kube.Definition {
	return kube.Definition{Group: "webhooks.example.com", Version: "v1", Kind: "Ticket"}
}

type Ticket = kube.CustomResource[TicketSpec, TicketStatus]

// atMost returns a check that allows so many seats.
func atMost(limit int) func(context.Context, *Ticket, *Ticket, *kube.Client) error {
	return func(_ context.Context, _, after *Ticket, _ *kube.Client) error {
		if after.Spec.Seats > limit {
			return field.Invalid(field.NewPath("spec", "seats"), after.Spec.Seats, fmt.Sprintf("at most %d", limit))
		}
		return nil
	}
}

func ticket(namespace, name string, seats int) *Ticket {
	return &Ticket{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: TicketSpec{Seats: seats}}
}

// configurations returns the names of the webhook configurations with a webhook for a namespace.
func configurations(t *testing.T, cluster *yaretest.Cluster, namespace string) (names []string) {
	t.Helper()
	for _, kind := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		out := cluster.Kubectl(t, "", "get", kind, "-o", `jsonpath={range .items[*]}{.metadata.name}{" "}{.webhooks[*].namespaceSelector}{"\n"}{end}`)
		for line := range strings.SplitSeq(out, "\n") {
			if strings.Contains(line, `"`+namespace+`"`) {
				name, _, _ := strings.Cut(line, " ")
				names = append(names, kind+"/"+name)
			}
		}
	}
	return names
}

// Two tests at the same time have webhooks for the same kind, with other rules. Each program is called about the objects
// of its own test, from the first one on, and neither about those of a third test. Nothing is left.
func TestRunPartsWithWebhooks(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Ticket](t, cluster)
	free := cluster.Client(t)
	other := cluster.Namespace(t)
	namespaces := make([]string, 2)
	t.Run("programs", func(t *testing.T) {
		for i := range namespaces {
			limit, class := 10*(i+1), fmt.Sprintf("class-%d", i)
			t.Run(class, func(t *testing.T) {
				t.Parallel()
				namespace := cluster.Namespace(t)
				namespaces[i] = namespace
				// The namespace of the test around this one is its namespace too.
				run := yaretest.RunParts(t, cluster.InNamespaces(namespace), webhook.Validate(atMost(limit)), webhook.Default(func(_ context.Context, object *Ticket) {
					if object.Spec.Class == "" {
						object.Spec.Class = class
					}
				}))
				tickets := kube.Namespaced[Ticket](cluster.Client(t), namespace)
				_, err := tickets.Create(t.Context(), ticket(namespace, "large", limit+1))
				if !kube.IsInvalid(err) || !strings.Contains(err.Error(), fmt.Sprintf("at most %d", limit)) || !strings.Contains(err.Error(), "spec.seats") {
					t.Errorf("%v, want a refusal because of spec.seats, from the first object on", err)
				}
				made, err := tickets.Create(t.Context(), ticket(namespace, "small", limit))
				if err != nil {
					t.Fatal(err)
				}
				if made.Spec.Class != class {
					t.Errorf("the class is %q, want the default of this program, %q", made.Spec.Class, class)
				}
				made, err = kube.Namespaced[Ticket](free, other).Create(t.Context(), ticket(other, class, 1000))
				if err != nil {
					t.Errorf("an object of another test: %v", err)
				} else if made.Spec.Class != "" {
					t.Errorf("an object of another test has the class %q", made.Spec.Class)
				}
				if found := configurations(t, cluster, namespace); len(found) != 2 {
					t.Errorf("the configurations for %s are %q, want two", namespace, found)
				}
				run.Stop()
				if _, err := tickets.Create(t.Context(), ticket(namespace, "later", limit+1)); err != nil {
					t.Errorf("the program has ended: %v", err)
				}
				// The same test runs a program again.
				yaretest.RunParts(t, cluster.InNamespaces(namespace), webhook.Validate(atMost(0)))
				if _, err := tickets.Create(t.Context(), ticket(namespace, "last", 1)); !kube.IsInvalid(err) {
					t.Errorf("%v, want a refusal by the second program", err)
				}
			})
		}
	})
	for _, namespace := range namespaces {
		if found := configurations(t, cluster, namespace); len(found) > 0 {
			t.Errorf("after the end of the test there are %q", found)
		}
	}
}
