package manifests

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/operator/internal/clusterread"
)

// A finalizer of the program's group that the program does not know is unknown. Finalizers of others are no concern of
// the program.
func TestUnknownFinalizers(t *testing.T) {
	t.Parallel()
	c := &Conflicts{
		Groups:     []string{"example.com"},
		Finalizers: []string{"apps.example.com/cleanup", "shop.example.org/cleanup"},
	}
	for name, want := range map[string]bool{
		"apps.example.com/cleanup": false, "apps.example.com/former": true, "jobs.example.com/cleanup": true, "example.com/x": true,
		"shop.example.org/cleanup": false, "shop.example.org/former": true, "example.org/x": false,
		"badexample.com/x": false, "kubernetes.io/pvc-protection": false, "foregroundDeletion": false,
	} {
		if got := c.isForgotten(name); got != want {
			t.Errorf("that %s is unknown is %t, not %t", name, got, want)
		}
	}
}

// A Deployment with another selector cannot be changed by an apply. The error names the former name of the program, if
// the selector has one.
func TestSelectorOfADeployment(t *testing.T) {
	t.Parallel()
	manifest := Object{"spec": Object{"selector": Object{"matchLabels": Object{LabelName: "robots", LabelInstance: "r"}}}}
	for name, test := range map[string]struct {
		selector map[string]string
		want     string
	}{
		"same":         {map[string]string{LabelInstance: "r", LabelName: "robots"}, ""},
		"former name":  {map[string]string{LabelInstance: "r", LabelName: "manager"}, `the program under the name "manager", and not "robots"`},
		"other labels": {map[string]string{"control-plane": "manager"}, "selects other Pods than the manifests"},
	} {
		o := &clusterread.Object{Resource: clusterread.Deployments(), Metadata: clusterread.Metadata{Namespace: "n", Name: "r"}}
		o.Spec.Selector.MatchLabels = test.selector
		err := (&Conflicts{Installation: Installation{Program: "robots", Name: "r", Namespace: "n"}}).checkName(t.Context(), o, manifest)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A further installation of a program that would watch all namespaces is refused. An installation that exists gets a note.
func TestFurtherInstallationOfAllNamespaces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		installed        []string
		watched          []string
		isError, hasNote bool
	}{
		"alone":                        {nil, nil, false, false},
		"installed alone":              {[]string{"ops"}, nil, false, false},
		"another one is installed":     {[]string{"shop"}, nil, true, false},
		"both are installed":           {[]string{"ops", "shop"}, nil, false, true},
		"this one watches a namespace": {[]string{"shop"}, []string{"lab"}, false, false},
	} {
		server := fakeserver.New()
		for _, namespace := range test.installed {
			server.Store(clusterread.Deployments(), namespace, "one", Object{"metadata": Object{"labels": Object{LabelName: "one", LabelManagedBy: ManagedBy}}})
		}
		notes := 0
		c := &Conflicts{Installation: Installation{Program: "one", Name: "one", Namespace: "ops"}, Client: server.Client(), Watched: test.watched, PrintNote: func(string) { notes++ }}
		err := c.checkOthers(t.Context())
		if (err != nil) != test.isError || (notes > 0) != test.hasNote || err != nil && !strings.Contains(err.Error(), "deployments.apps shop/one is another installation of the program") {
			t.Errorf("%s: %d notes, %v", name, notes, err)
		}
	}
}
