package explore_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// directory is an external system: the accounts of each namespace.
type directory struct {
	mu       sync.Mutex
	accounts map[string]map[string]bool
}

func (d *directory) add(namespace, account string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.accounts[namespace] == nil {
		d.accounts[namespace] = make(map[string]bool)
	}
	d.accounts[namespace][account] = true
}

func (d *directory) look(_ context.Context, namespace string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(d.accounts[namespace])), "\n"), nil
}

func (d *directory) empty(_ context.Context, namespace string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.accounts, namespace)
	return nil
}

// accountParts returns the parts of an operator that makes an account for each Note. nameAccount names the account.
func accountParts(d *directory, nameAccount func(*Note) string) func(namespace string) []operator.Part {
	return func(namespace string) []operator.Part {
		return []operator.Part{controller.New(func(ctx context.Context, n *Note, c *kube.Client) (controller.Action, error) {
			if n.Status.Page != "" {
				return controller.Done(), nil
			}
			account := nameAccount(n)
			d.add(namespace, account)
			n.Status.Page = "there is an account"
			return controller.Done(), c.ApplyStatus(ctx, n)
		})}
	}
}

// What a run leaves in an external system is compared between runs, and removed after each run.
func TestExternalSystemIsCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	yaretest.Define[Note](t, yaretest.Shared(t))
	settings := func(d *directory) explore.Settings {
		note := &Note{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: NoteSpec{Text: "hello"}}
		return explore.Settings{
			Scenario:    []explore.Step{{Name: "apply", Apply: []kube.Object{note}}},
			Only:        []string{"crash"},
			LookOutside: d.look, EmptyOutside: d.empty,
		}
	}
	right, wrong := &directory{accounts: make(map[string]map[string]bool)}, &directory{accounts: make(map[string]map[string]bool)}
	byName := accountParts(right, func(n *Note) string { return n.Name })
	var count atomic.Int64
	byNumber := accountParts(wrong, func(*Note) string { return fmt.Sprint("account-", count.Add(1)%7) })
	requireFailures(t, failuresOf(t, func(t testing.TB) { explore.Run(t, explore.Parts(byName), settings(right)) }))
	// The number differs between the runs without faults, so that the step is not compared. That is a warning, and no finding.
	var coverage *explore.Coverage
	requireFailures(t, failuresOf(t, func(t testing.TB) { coverage = explore.Run(t, explore.Parts(byNumber), settings(wrong)) }))
	if got := strings.Join(coverage.Warnings, "\n"); !strings.Contains(got, "outside/system") {
		t.Errorf("the warnings are %s", got)
	}
	for _, d := range []*directory{right, wrong} {
		if len(d.accounts) > 0 {
			t.Errorf("the runs have left %v", d.accounts)
		}
	}
}

// Regression: a reconcile that waits for an external system makes no request, and counted as rest.
func TestReconcileUnderWayIsNoRest(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	yaretest.Define[Note](t, yaretest.Shared(t))
	slow := func() []operator.Part {
		return []operator.Part{controller.New(func(ctx context.Context, n *Note, c *kube.Client) (controller.Action, error) {
			select {
			case <-ctx.Done():
				return controller.Done(), ctx.Err()
			case <-time.After(2500 * time.Millisecond): // longer than a run without faults waits for the rest
			}
			_, err := kube.Apply(ctx, c, kube.OwnedBy(n, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}))
			return controller.Done(), err
		}, controller.Owns[corev1.ConfigMap]())}
	}
	note := &Note{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: NoteSpec{Text: "hello"}}
	var early atomic.Int64
	explore.Run(t, explore.Parts(slow), explore.Settings{
		Scenario: []explore.Step{{Name: "apply", Apply: []kube.Object{note}}}, Only: []string{"idle"},
		AtRest: []explore.Check{{Name: "there is a page", Verify: func(s explore.State) error {
			if len(pages(s)) == 0 {
				early.Add(1)
			}
			return nil
		}}},
	})
	if early.Load() > 0 {
		t.Errorf("%d runs were at rest before the reconcile had ended", early.Load())
	}
}
