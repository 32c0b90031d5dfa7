package operatortest

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
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

// checkRules fails t if a write that the rules allow was never made: the list of rules is
// what users grant.
func (s *suite) checkRules(t *testing.T, made []yaretest.Request) {
	t.Helper()
	for _, rule := range s.Rules {
		for _, resource := range rule.Resources {
			plural, subresource, _ := strings.Cut(resource, "/")
			if group := rule.APIGroups[0]; group != "" {
				plural += "." + group
			}
			for _, verb := range rule.Verbs {
				// Get and list are needed when no watch shows the object. An apply needs create as
				// well as patch when the object does not exist yet.
				if verb == "get" || verb == "list" || verb == "create" {
					continue
				}
				if !slices.ContainsFunc(made, func(r yaretest.Request) bool {
					return string(r.Verb) == verb && r.Resource == plural && r.Subresource == subresource
				}) {
					t.Errorf("the rules allow to %s %s, which it never did", verb, resource)
				}
			}
		}
	}
}

// Rule returns the right to use verbs on a resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
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
