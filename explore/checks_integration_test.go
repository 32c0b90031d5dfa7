package explore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

type NoteSpec struct {
	Text string `json:"text"`
}

type NoteStatus struct {
	Page string `json:"page,omitempty"`
}

func (NoteSpec) Definition() kube.Definition {
	return kube.Definition{Group: "explore.example.com", Version: "v1", Kind: "Note"}
}

type Note = kube.CustomResource[NoteSpec, NoteStatus]

// noteParts returns the parts of an operator that creates a page for each Note, and records the page in
// the status. A page that exists without a record is marked as recovered.
func noteParts() []operator.Part {
	return []operator.Part{controller.New(func(ctx context.Context, n *Note, c *kube.Client) (controller.Action, error) {
		if n.Status.Page != "" {
			return controller.Done(), nil
		}
		page := kube.OwnedBy(n, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name + "-page"}, Data: map[string]string{"text": n.Spec.Text},
		})
		_, err := kube.Namespaced[corev1.ConfigMap](c, n.Namespace).Create(ctx, page)
		if kube.IsAlreadyExists(err) {
			page.Data["recovered"] = "yes"
			_, err = kube.Apply(ctx, c, page)
		}
		if err != nil {
			return controller.Done(), err
		}
		n.Status.Page = page.Name
		return controller.Done(), c.ApplyStatus(ctx, n)
	}, controller.Owns[corev1.ConfigMap](controller.WriteVerbs(wire.VerbCreate, wire.VerbPatch)))}
}

// pages returns the pages of a state.
func pages(s explore.State) (pages []*corev1.ConfigMap) {
	for _, m := range explore.Objects[corev1.ConfigMap](s) {
		if m.Name != "kube-root-ca.crt" {
			pages = append(pages, m)
		}
	}
	return pages
}

func isRecovered(s explore.State) bool {
	for _, page := range pages(s) {
		if page.Data["recovered"] == "yes" {
			return true
		}
	}
	return false
}

// A check that must always hold finds a temporary state. A condition finds out what was not tried. What a
// file accepts is no finding, and an entry of the file that no run needs is reported.
func TestChecksOfAnExploration(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	yaretest.Define[Note](t, yaretest.Shared(t))
	folder := t.TempDir()
	accept, found := filepath.Join(folder, "accept.yaml"), filepath.Join(folder, "found.json")
	if err := os.WriteFile(accept, []byte(`
- objects: configmaps/hello-page
  path: data.recovered
  faults: [crash]
  reason: the mark shows support where the program has crashed
- path: status.nothing
  reason: nobody has it
`), 0o600); err != nil {
		t.Fatal(err)
	}
	note := &Note{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: NoteSpec{Text: "Hello!"}}
	settings := explore.Settings{
		Scenario: []explore.Step{{Name: "apply a note", Apply: []kube.Object{note}}}, Only: []string{"crash"}, AcceptFile: accept,
	}
	neverRecovered := []explore.Check{{Name: "no page is recovered", Verify: func(s explore.State) error {
		if isRecovered(s) {
			return errors.New("a page is")
		}
		return nil
	}}}

	t.Run("right", func(t *testing.T) {
		t.Parallel()
		hasOnePage := func(s explore.State) error {
			notes := explore.Objects[Note](s)
			if n := len(pages(s)); n != 1 || len(notes) != 1 || notes[0].Status.Page != pages(s)[0].Name {
				return fmt.Errorf("there are %d pages and %d notes", n, len(notes))
			}
			return nil
		}
		settings := settings
		settings.Always = []explore.Check{{Name: "a page has an owner", Verify: func(s explore.State) error {
			for _, page := range pages(s) {
				if len(page.OwnerReferences) == 0 {
					return fmt.Errorf("%s has none", page.Name)
				}
			}
			return nil
		}}}
		settings.Sometimes = []explore.Check{{Name: "a page is recovered", Verify: func(s explore.State) error {
			if !isRecovered(s) {
				return errors.New("no page is")
			}
			return nil
		}}}
		settings.AtRest = []explore.Check{{Name: "one page at rest", Verify: hasOnePage}}
		settings.AtEnd = []explore.Check{{Name: "one page at the end", Verify: hasOnePage}}
		coverage := explore.Run(t, explore.Parts(noteParts), settings)
		if c := coverage.Conditions; c.Done != 1 || c.Total != 1 {
			t.Errorf("%d of %d conditions held", c.Done, c.Total)
		}
		if unused := coverage.UnusedAcceptances; len(unused) != 1 || unused[0] != "status.nothing (nobody has it)" {
			t.Errorf("the unused acceptances are %q", unused)
		}
		if len(coverage.Warnings) > 0 {
			t.Errorf("the warnings are %q", coverage.Warnings)
		}
	})
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		failures := failuresOf(t, func(t testing.TB) {
			settings := settings
			settings.Always, settings.ReportFile = neverRecovered, found
			settings.Sometimes = []explore.Check{{Name: "there is a Secret", Verify: func(s explore.State) error {
				if len(explore.Objects[corev1.Secret](s)) == 0 {
					return errors.New("there is none")
				}
				return nil
			}}}
			explore.Run(t, explore.Parts(noteParts), settings)
		})
		requireFailures(t, failures,
			`check failed: crash at patch notes.explore.example.com/status hello`,
			`never held: apply a note`)
		for _, part := range []string{`check "no page is recovered": in step 1`, "when configmaps/hello-page had the resource version", "a page is"} {
			if !strings.Contains(failures[0], part) {
				t.Errorf("the failure lacks %q: %s", part, failures[0])
			}
		}
		repeated := failuresOf(t, func(t testing.TB) {
			settings := settings
			settings.Always, settings.ReplayFile = neverRecovered, found
			explore.Run(t, explore.Parts(noteParts), settings)
		})
		requireFailures(t, repeated, `check failed: crash at patch notes.explore.example.com/status hello`)
	})
}

// The reference runs of a program that fails at once differ in nothing. The exploration reports that.
func TestReferencesOfAProgramThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	yaretest.Define[Note](t, yaretest.Shared(t))
	failing := func() []operator.Part {
		return []operator.Part{controller.New(func(context.Context, *Note, *kube.Client) (controller.Action, error) {
			return controller.Done(), errors.New("it never works")
		})}
	}
	note := &Note{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: NoteSpec{Text: "Hello!"}}
	coverage := explore.Run(t, explore.Parts(failing), explore.Settings{
		Scenario: []explore.Step{{Name: "apply a note", Apply: []kube.Object{note}}}, Only: []string{"crash"},
	})
	warnings := strings.Join(coverage.Warnings, "\n")
	for _, part := range []string{"The program wrote no object in the reference runs.", "The program logged an error in each reference run.", "it never works"} {
		if !strings.Contains(warnings, part) {
			t.Errorf("the warnings lack %q: %s", part, warnings)
		}
	}
}
