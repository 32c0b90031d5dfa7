package dev

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/yaretest"
)

// The policies among an operator's manifests are applied, and removed when the next build has none. A build with a mistake
// in a policy changes nothing.
func TestPoliciesOfAnOperator(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t) // the policies concern all namespaces
	binary := yaretest.Build(t, "../../../../yaretest/testdata/policies")
	definitions, err := askCRDs(t.Context(), binary, "op")
	if err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t, definitions.text, "apply", "--server-side", "-f", "-")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+definitions.names()[0])
	of := func(field string) policies {
		t.Helper()
		p, err := askPolicies(t.Context(), binary, "op", []string{"--field", field})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	note := func(text string) { t.Errorf("a note: %s", text) }
	try := func() string {
		const valve = "apiVersion: policies.yaretest.example.com/v1\nkind: Valve\nmetadata: {name: v}\nspec: {flow: 100}\n"
		out, problems, _ := cluster.TryKubectl(t, valve, "create", "--dry-run=server", "-f", "-")
		return out + problems
	}
	good, bad, none := of("flow"), of("flaw"), of("none")
	if len(good.items) != 2 || none.text != "" {
		t.Fatalf("there are %d policies and bindings, want 2, and %q, want none", len(good.items), none.text)
	}
	if err := good.apply(t.Context(), cluster.Kubeconfig(), none, note); err != nil {
		t.Fatal(err)
	}
	if answer := try(); !strings.Contains(answer, "the pipe bursts") {
		t.Errorf("kubectl printed %q, want the refusal of the policy", answer)
	}
	err = bad.apply(t.Context(), cluster.Kubeconfig(), good, note)
	if err == nil || !strings.Contains(err.Error(), "valve-flow.default") || !strings.Contains(err.Error(), `"object.spec.flaw < 100"`) {
		t.Errorf("%v, want the policy and the expression", err)
	}
	if answer := try(); !strings.Contains(answer, "the pipe bursts") {
		t.Errorf("after a mistake kubectl printed %q, want the refusal of the policy of before", answer)
	}
	if err := none.apply(t.Context(), cluster.Kubeconfig(), good, note); err != nil {
		t.Fatal(err)
	}
	if names := cluster.Kubectl(t, "", "get", "validatingadmissionpolicy,validatingadmissionpolicybinding", "-o", "name"); strings.TrimSpace(names) != "" {
		t.Errorf("after a build without policies there are %s", names)
	}
}
