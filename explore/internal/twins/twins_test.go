package twins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// twin is a wrong operator and its twin that is right.
type twin struct {
	name         string
	wrong, right func() []operator.Part
	steps        []finding.Step
	// values are values of fields for which the schema suggests none.
	values map[string][]any
	// finds are the kinds of faults of which each can show the mistake. It is empty if the steps alone
	// show the mistake.
	finds []faults.Kind
	// verdict is the worst that an exploration finds in the wrong operator.
	verdict finding.Verdict
	// published names the issues that the operator was reduced from, if there are any.
	published []string
}

// site returns a Site with one page.
func site(name string, spec SiteSpec) *Site {
	if spec.Text == "" {
		spec.Text = "hello"
	}
	if spec.Page == "" {
		spec.Page = "main"
	}
	return &Site{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// siteObject returns a Site as the user applies it.
func siteObject(name string, spec SiteSpec, finalizers ...string) json.RawMessage {
	metadata := map[string]any{"name": name}
	if len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
	object, err := json.Marshal(map[string]any{
		"apiVersion": "twins.example.com/v1", "kind": "Site", "metadata": metadata, "spec": site(name, spec).Spec,
	})
	if err != nil {
		panic(err)
	}
	return object
}

// applying returns a step in which the user applies a Site.
func applying(name string, spec SiteSpec) finding.Step {
	return finding.Step{Name: "apply " + name, Apply: []json.RawMessage{siteObject(name, spec)}}
}

// deleting returns a step in which the user deletes a Site.
func deleting(name string) finding.Step {
	return finding.Step{Name: "delete " + name, Delete: []faults.Object{{Resource: "sites.twins.example.com", Name: name}}}
}

// changed returns the steps of a Site whose text changes.
func changed() []finding.Step {
	return []finding.Step{applying("web", SiteSpec{Text: "hello", Size: 1}), applying("web", SiteSpec{Text: "good bye", Size: 1})}
}

// resized returns the steps of a Site that has each size in turn.
func resized(sizes ...int32) []finding.Step {
	var steps []finding.Step
	for _, size := range sizes {
		steps = append(steps, applying("web", SiteSpec{Size: size}))
	}
	return steps
}

// single returns one step. The exploration changes the values.
func single(spec SiteSpec) []finding.Step {
	spec.Size = 1
	return []finding.Step{applying("web", spec)}
}

// renamed returns the steps of a Site whose page has each name in turn.
func renamed(pages ...string) []finding.Step {
	var steps []finding.Step
	for _, page := range pages {
		steps = append(steps, applying("web", SiteSpec{Page: page, Size: 1}))
	}
	return steps
}

// hold is the finalizer of a user. The finalizer keeps a Site that is being deleted.
const hold = "example.com/hold"

// namesakes returns the steps of a Site whose deletion is held up. When the deletion ends, another Site of the name
// follows at once.
func namesakes() []finding.Step {
	plain := siteObject("web", SiteSpec{Size: 1})
	return []finding.Step{
		{Name: "apply web", Apply: []json.RawMessage{siteObject("web", SiteSpec{Size: 1}, hold)}},
		deleting("web"),
		// The first apply removes the finalizer, and the second one creates a Site.
		{Name: "let web go, and apply web", Apply: []json.RawMessage{plain, plain}},
	}
}

// annotated returns the steps of a Site whose note changes its key.
func annotated() []finding.Step {
	return []finding.Step{
		applying("web", SiteSpec{Size: 1, Notes: map[string]string{"first": "1"}}),
		applying("web", SiteSpec{Size: 1, Notes: map[string]string{"second": "2"}}),
	}
}

// twins returns all twins.
func twins() []twin {
	var (
		crash   = []faults.Kind{faults.Crash}
		stale   = []faults.Kind{faults.Stale}
		foreign = []faults.Kind{faults.ForeignDelete, faults.ForeignEdit}
		lost    = []faults.Kind{faults.Crash, faults.CommittedReset}
	)
	return []twin{
		{
			name: "creates before it records", wrong: parts(createBeforeRecording), right: parts(applyAndRecord),
			steps: changed(), finds: lost, verdict: finding.Destroyed,
		}, {
			name: "trusts a stale list", wrong: sweeping(isInPastList), right: sweeping(isOnServer),
			steps: []finding.Step{applying("web", SiteSpec{Size: 1}), applying("shop", SiteSpec{Size: 1})}, finds: stale, verdict: finding.Destroyed,
		}, {
			name: "never removes a finalizer", wrong: cleaningUp(applyMainPage, deletePageThatExists), right: cleaningUp(applyMainPage, deletePageIfExists),
			steps: append(changed(), deleting("web")), finds: lost, verdict: finding.Wrong,
		}, {
			name: "fights its own defaults", wrong: defaulting(replacePage), right: defaulting(applyFields),
			steps: changed(), verdict: finding.Busy,
		}, {
			name: "leaks a child on rename", wrong: parts(applyMainPage), right: parts(applyOnlyPage),
			steps: renamed("first", "second"), verdict: finding.Wrong,
		}, {
			name: "acts on an event instead of the state", wrong: actOnDeletion, right: parts(applyMainPage),
			steps: append(changed(), deleting("web")), finds: crash, verdict: finding.Wrong,
		}, {
			name: "takes already exists for failure", wrong: parts(createOnce), right: parts(applyAndRecord),
			steps: changed(), finds: lost, verdict: finding.Wrong,
		}, {
			name: "writes its status each time", wrong: checking(countChecks), right: checking(applyAndRecord),
			steps: changed(), verdict: finding.Busy,
		}, {
			name: "forgets a field on update", wrong: parts(createOr(newMainPage, setText)), right: parts(applyMainPage),
			steps: annotated(), verdict: finding.Wrong,
		}, {
			name: "deletes by name without a uid", wrong: parts(retiring(deletePageByName)), right: parts(retiring(deletePage)),
			steps: renamed("first", "second", "first"), finds: crash, verdict: finding.Destroyed,
		}, {
			name: "regenerates a secret at restart", wrong: makePasswordAtStart, right: keepPassword,
			steps: changed(), finds: crash, verdict: finding.Destroyed,
		}, {
			name: "keeps progress in memory only", wrong: rememberPage, right: parts(applyOnlyPage),
			steps: renamed("first", "second"), finds: crash, verdict: finding.Wrong,
		}, {
			name: "is stuck after a bad value", wrong: parts(giveUp), right: parts(reportProblem),
			steps: renamed("first", "no label", "second"), verdict: finding.Wrong,
		}, {
			name: "checks only on create", wrong: parts(applyOnCreate), right: parts(applyAndRecord),
			steps: changed()[:1], finds: foreign, verdict: finding.Wrong,
		}, {
			name: "does not watch what it made", wrong: unwatched, right: parts(applyMainPage),
			steps: changed(), finds: foreign, verdict: finding.NeedsRestart,
		},

		{
			name: "deletes the data of a namesake", wrong: cleaningUp(deleteByPastDeletion, deletePageIfExists), right: cleaningUp(deleteByOwner, deletePageIfExists),
			steps: namesakes(), finds: stale, verdict: finding.Destroyed,
			published: []string{"pravega/zookeeper-operator#312", "rabbitmq/cluster-operator#648"},
		}, {
			name: "scales by a stale size", wrong: parts(scaleByPast), right: parts(scaleByPresent),
			steps: resized(2, 1, 2), finds: stale, verdict: finding.Destroyed,
			published: []string{"pravega/zookeeper-operator#314", "instaclustr/cassandra-operator#407", "elastic/cloud-on-k8s#5274"},
		}, {
			name: "shrinks by a stale size what can only grow", wrong: parts(resizing(differs)), right: parts(resizing(isSmaller)),
			steps: resized(1, 2), values: map[string][]any{"spec.size": nil}, // the state depends on all former sizes
			finds: stale, verdict: finding.Destroyed,
			published: []string{"rabbitmq/cluster-operator#653"},
		}, {
			name: "forgets a resize", wrong: parts(resizeByWorkload), right: parts(resizeEach),
			steps: resized(1, 2), finds: crash, verdict: finding.Wrong,
			published: []string{"rabbitmq/cluster-operator#782"},
		}, {
			name: "forgets the volumes of removed members", wrong: parts(deleteVolumesByWorkload), right: parts(deleteVolumesBySite),
			steps: resized(2, 1), finds: crash, verdict: finding.Wrong,
			published: []string{"Orange-OpenSource/casskop#370"},
		}, {
			name: "keeps annotations that were removed", wrong: parts(createOr(newMainPage, mergeNotes)), right: parts(applyMainPage),
			steps: annotated(), verdict: finding.Wrong,
			published: []string{"rabbitmq/cluster-operator#968"},
		},

		{
			name: "keeps a volume of another class", wrong: parts(keepClaim, owningClaims()), right: parts(moveToClass, owningClaims()),
			steps: single(SiteSpec{Class: "standard"}), values: map[string][]any{"spec.class": {"fast"}}, verdict: finding.Wrong,
			published: []string{"rabbitmq/cluster-operator#992"},
		}, {
			name: "sets a domain only on create", wrong: parts(createOr(newAddressedPage, setText)), right: parts(applyAddressedPage),
			steps: single(SiteSpec{}), values: map[string][]any{"spec.domain": {"example.org"}}, verdict: finding.Wrong,
			published: []string{"pravega/zookeeper-operator#474"},
		}, {
			name: "creates and never updates", wrong: parts(createOr(newMainPage, leaveAsIs)), right: parts(applyMainPage),
			steps: single(SiteSpec{Notes: map[string]string{"first": "1"}}), verdict: finding.Wrong,
			published: []string{"spotahome/redis-operator#400"},
		}, {
			name: "waits for what a bad value has broken", wrong: serving(waitForService), right: serving(applyPlacedPage),
			steps: single(SiteSpec{Place: "here"}), values: map[string][]any{"spec.place": {nowhere}}, verdict: finding.Wrong,
			published: []string{"k8ssandra/cass-operator#334"},
		}, {
			name: "scales by the former template", wrong: parts(scaleByTemplate), right: parts(deleteVolumesBySite),
			steps:   []finding.Step{applying("web", SiteSpec{Size: 1}), applying("web", SiteSpec{Size: 2, Text: "good bye"})},
			verdict: finding.Wrong, published: []string{"k8ssandra/cass-operator#324"},
		}, {
			name: "ends without limits", wrong: crashing(requireLimits), right: crashing(applyLimits),
			steps: single(SiteSpec{Limits: &Limits{Memory: "1Gi"}}), verdict: finding.Exited,
			published: []string{"OT-CONTAINER-KIT/redis-operator#283"},
		}, {
			name: "ends when a reference has no key", wrong: crashing(requireKey), right: crashing(reportMissingKey),
			steps: single(SiteSpec{Login: &Login{Secret: "web", Key: new("password")}}), verdict: finding.Exited,
			published: []string{"OT-CONTAINER-KIT/redis-operator#286"},
		},

		{
			name: "swallows a conflict", wrong: parts(swallowConflict), right: parts(updatePage),
			steps: changed(), finds: []faults.Kind{faults.DeniedConflict}, verdict: finding.GaveUp,
		}, {
			name: "swallows a refusal", wrong: parts(swallowRefusal), right: parts(applyMainPage),
			steps: changed()[:1], finds: []faults.Kind{faults.DeniedQuota, faults.DeniedRole, faults.DeniedWebhook}, verdict: finding.GaveUp,
		}, {
			name: "never tries again what was invalid", wrong: remembering(), right: parts(applyMainPage),
			steps: changed()[:1], finds: []faults.Kind{faults.DeniedInvalid}, verdict: finding.GaveUp,
		},
	}
}

// Each right twin reconciles its Sites, and nothing is left of a Site that is deleted.
func TestRightTwins(t *testing.T) {
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	for _, twin := range twins() {
		t.Run(twin.name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			client := cluster.Client(t)
			yaretest.RunParts(t, cluster, twin.right()...)
			sites := kube.Namespaced[Site](client, namespace)
			for _, step := range twin.steps {
				takeStep(t, sites, step)
			}
			all, err := sites.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				takeStep(t, sites, deleting(s.Name))
			}
			yaretest.Eventually(t, func() error {
				return errors.Join(haveNone[corev1.ConfigMap](t.Context(), client, namespace), haveNone[corev1.Secret](t.Context(), client, namespace))
			})
		})
	}
}

// takeStep makes the changes of the user in a step, and waits until the operator has done its part.
func takeStep(t *testing.T, sites kube.API[Site], step finding.Step) {
	t.Helper()
	for _, object := range step.Apply {
		s, err := sites.Decode(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sites.Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	yaretest.Eventually(t, func() error { return havePages(t.Context(), sites) })
	for _, object := range step.Delete {
		if err := sites.Delete(t.Context(), object.Name); err != nil {
			t.Fatal(err)
		}
		yaretest.Eventually(t, func() error {
			s, err := sites.Get(t.Context(), object.Name)
			if err == nil && !slices.Equal(s.Finalizers, []string{hold}) {
				return fmt.Errorf("the Site %s has the finalizers %q", s.Name, s.Finalizers)
			}
			return kube.IgnoreNotFound(err)
		})
	}
}

// havePages returns an error unless each Site has a page.
func havePages(ctx context.Context, sites kube.API[Site]) error {
	all, err := sites.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.DeletionTimestamp != nil {
			continue
		}
		if err := hasPages(ctx, sites, s.Name); err != nil {
			return err
		}
	}
	return nil
}

// hasPages returns an error unless the pages of a Site are as the Site says, or the Site reports a problem.
func hasPages(ctx context.Context, sites kube.API[Site], name string) error {
	s, err := sites.Get(ctx, name)
	if err != nil {
		return err
	}
	pages, err := pagesOf(s, sites.Client()).List(ctx)
	if err != nil {
		return err
	}
	for _, page := range pages {
		if page.Data["text"] == s.Spec.Text && metav1.IsControlledBy(page, s) {
			return nil
		}
	}
	if s.Status.Problem != "" {
		return nil
	}
	return fmt.Errorf("no page of the Site %s has its text %q", name, s.Spec.Text)
}

// haveNone returns an error if a namespace has objects that its controllers did not make.
func haveNone[T any, P kube.ObjectOf[T]](ctx context.Context, c *kube.Client, namespace string) error {
	all, err := kube.Namespaced[T, P](c, namespace).List(ctx)
	if err != nil {
		return err
	}
	for _, object := range all {
		if name := P(object).GetName(); name != "kube-root-ca.crt" {
			return fmt.Errorf("%T %s is left", object, name)
		}
	}
	return nil
}
