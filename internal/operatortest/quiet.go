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

// When all is as it should be, the operator asks for nothing; after a restart as well.
func (s *suite) testAtRest(t *testing.T) {
	w := s.world(t)
	w.apply(t, "app", first)
	w.start(t)
	w.become(t, "app", first)
	w.proxy.RequireIdle(t, 10*time.Second, w.operator)
	if s.Requeues {
		w.operator.WaitForLog(t, `"cause":"requeue"`) // that cost nothing
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
	w.noErrors(t)
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
				// Get and list are for when a watch does not tell, and an apply asks for create
				// as well as patch when there is nothing yet.
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

// Rule is what an operator may do with a resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// errorLines are what a program logged of errors.
func errorLines(p *yaretest.Process) (lines []string) {
	for _, line := range p.Log() {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
			lines = append(lines, line)
		}
	}
	return lines
}
