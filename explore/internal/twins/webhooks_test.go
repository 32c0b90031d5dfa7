package twins

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// The operators of this file have webhooks. An API server may call a webhook twice for one request.

// checkText refuses a Site without a text.
func checkText(_ context.Context, _, s *Site, _ *kube.Client) error {
	if s.Spec.Text == "" {
		return fmt.Errorf("spec.text is empty")
	}
	return nil
}

// validatingSites returns the parts of a program with a validator.
func validatingSites() []operator.Part {
	return append(parts(applyMainPage)(), operator.Validate(checkText))
}

// countingCalls returns the parts of a program whose validator counts its calls. The page has the count.
func countingCalls() []operator.Part {
	var mu sync.Mutex
	calls := make(map[string]int)
	check := func(ctx context.Context, before, s *Site, c *kube.Client) error {
		if !operator.CallOf(ctx).DryRun {
			mu.Lock()
			calls[s.Namespace+"/"+s.Name]++
			mu.Unlock()
		}
		return checkText(ctx, before, s, c)
	}
	reconcile := func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
		page := newMainPage(s)
		mu.Lock()
		page.Data["checked"] = fmt.Sprint(calls[s.Namespace+"/"+s.Name])
		mu.Unlock()
		_, err := kube.Apply(ctx, c, page)
		return controller.Done(), err
	}
	return []operator.Part{controller.New(reconcile, controller.Owns[corev1.ConfigMap]()), operator.Validate(check)}
}

// defaultingSites returns a function that makes the parts of a program with a defaulter.
func defaultingSites(setDefaults func(ctx context.Context, s *Site)) func() []operator.Part {
	return func() []operator.Part { return append(parts(applyMainPage)(), operator.Default(setDefaults)) }
}

// addNote adds a note, unless the Site has the note.
func addNote(_ context.Context, s *Site) { addNoteNamed(s, "note-0") }

// addNextNote adds one more note each time.
func addNextNote(_ context.Context, s *Site) {
	addNoteNamed(s, fmt.Sprintf("note-%d", len(s.Spec.Notes)))
}

// addNoteNamed adds a note of a name, unless the Site has the note.
func addNoteNamed(s *Site, name string) {
	notes := map[string]string{name: "added"}
	maps.Copy(notes, s.Spec.Notes)
	s.Spec.Notes = notes
}

// webhookTwins returns the twins of this file.
func webhookTwins() []twin {
	steps := []finding.Step{applying("web", SiteSpec{Text: "hello"}), deleting("web")}
	twice := []faults.Kind{faults.WebhookTwice}
	return []twin{
		{name: "counts the calls of its validator", wrong: countingCalls, right: validatingSites, steps: steps, finds: twice, verdict: finding.Wrong},
		{name: "adds one more default at each call", wrong: defaultingSites(addNextNote), right: defaultingSites(addNote), steps: steps, finds: twice, verdict: finding.Wrong},
	}
}

// An exploration finds what is wrong with webhooks, and nothing in right ones, whatever happens to their calls.
func TestExploreWebhooks(t *testing.T) {
	if testing.Short() || os.Getenv(modeVariable) == modeRight {
		t.Skip("an exploration makes many runs")
	}
	seed := seedOf(t)
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	for _, twin := range webhookTwins() {
		if os.Getenv(modeVariable) != modeAll && twin.name != "counts the calls of its validator" {
			continue
		}
		options := engine.Settings{Config: cluster.Config(), Steps: twin.steps, Values: twin.fieldValues(), Seed: seed, Only: twin.kinds()}
		t.Run(twin.name+"/wrong", func(t *testing.T) {
			t.Parallel()
			requireFound(t, twin, options)
		})
		t.Run(twin.name+"/right", func(t *testing.T) {
			t.Parallel()
			kinds, err := faults.ParseKinds("webhooks")
			if err != nil {
				t.Fatal(err)
			}
			options.Only = append(kinds, faults.Crash)
			record := requireNotFound(t, engine.Parts("twin", twin.right), options)
			for _, k := range options.Only {
				if record.Coverage.Kinds[k].Done == 0 {
					t.Errorf("%s has not happened: %+v", k, record.Coverage.NotApplicable)
				}
			}
		})
	}
}
