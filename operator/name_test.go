package operator

import (
	"strings"
	"testing"
)

// The field Name names the program, whatever the file is called. Messages to the user name the file.
func TestNameOfAProgram(t *testing.T) {
	t.Parallel()
	p := Program{Name: "shop", Parts: idleParts}
	status, stdout, stderr := callProgram(strings.Fields("manifests --image i:1"), p)
	if status != 0 {
		t.Fatal(stderr)
	}
	d := deploymentOf(t, stdout, "shop")
	if d.Namespace != "shop-system" || d.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != "shop" {
		t.Errorf("the Deployment is %+v", d)
	}
	if n := strings.Count(stdout, "resourceNames:\n  - shop\n"); n != 2 { // of the Lease
		t.Errorf("%d rules name the Lease:\n%s", n, stdout)
	}
	if strings.Contains(stdout, "name: gadgets\n") {
		t.Errorf("the manifests have the name of the file:\n%s", stdout)
	}
	_, stdout, _ = callProgram([]string{"--help"}, p)
	checkText(t, "the help", stdout, []string{"  gadgets manifests", "(default: shop-system)"})
	p.Name = "My Shop"
	if status, _, stderr := callProgram([]string{"crd"}, p); status != 1 || !strings.Contains(stderr, `the field Name of operator.Program is "My Shop"`) {
		t.Errorf("a name that is wrong: status %d, %s", status, stderr)
	}
}
