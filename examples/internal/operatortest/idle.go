package operatortest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

type object = unstructured.Unstructured

var crds = kube.Resource{
	GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	Plural:           "customresourcedefinitions", ClusterScoped: true,
}

// When the cluster is as it should be, the operator sends no request. After a restart it writes
// nothing.
func (s *suite) testAtRest(t *testing.T) {
	w := s.world(t)
	w.apply(t, "app", first)
	w.start(t)
	w.waitUntilReady(t, "app", first)
	w.proxy.RequireIdle(t, 10*time.Second, w.operator)
	if s.Requeues {
		w.operator.WaitForLog(t, `"cause":"requeue"`) // which sent no request
	}
	w.stop(t)
	before := len(w.proxy.Writes())
	w.start(t)
	w.operator.WaitForLog(t, `"wrote":`)
	w.proxy.RequireIdle(t, 0)
	w.stop(t)
	if again := w.proxy.Writes()[before:]; len(again) > 0 {
		t.Errorf("started again, with nothing to do, it wrote %v", again)
	}
	w.requireNoErrors(t)
}

// checkUsed fails t if a write that the rules allow was never made: the rules are what users grant.
func (r rules) checkUsed(t *testing.T, made []yaretest.Request) {
	t.Helper()
	for p := range r.permissions() {
		plural, subresource, _ := strings.Cut(p.resource, "/")
		if p.group != "" {
			plural += "." + p.group
		}
		// Get and list are needed when no watch shows the object. An apply needs create as well as patch
		// when the object does not exist yet. An owner reference may need the update of finalizers.
		if p.verb == "get" || p.verb == "list" || p.verb == "create" || subresource == "finalizers" {
			continue
		}
		if !slices.ContainsFunc(made, func(r yaretest.Request) bool {
			return string(r.Verb) == p.verb && r.Resource == plural && r.Subresource == subresource
		}) {
			t.Errorf("it may %s, which it never did", p)
		}
	}
}

// errorLines returns the errors and warnings that a program logged.
func errorLines(p *yaretest.Process) (lines []string) {
	for _, line := range p.Log() {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
			lines = append(lines, line)
		}
	}
	return lines
}
