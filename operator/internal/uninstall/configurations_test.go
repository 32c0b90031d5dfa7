package uninstall

import (
	"testing"

	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// A configuration belongs to an installation by its labels. Without them, it belongs by its name and the Service that it
// calls.
func TestOwnersOfConfigurations(t *testing.T) {
	t.Parallel()
	o := &Options{Installation: manifests.Installation{Program: "robots", Name: "robots", Namespace: "ns"}}
	own, foreign := map[string]string{manifests.LabelInstance: "robots", manifests.LabelNamespace: "ns"}, map[string]string{manifests.LabelInstance: "robots", manifests.LabelNamespace: "other"}
	for name, test := range map[string]struct {
		name, service string
		labels        map[string]string
		want          bool
	}{
		"labels":                            {"robots.ns", "robots", own, true},
		"labels, another name":              {"any", "", own, true},
		"labels of another installation":    {"robots.ns", "robots", foreign, false},
		"no labels, its Service":            {"robots.ns", "robots", nil, true},
		"no labels, another Service":        {"robots.ns", "other", nil, false},
		"no labels, without entries":        {"robots.ns", "", nil, false},
		"no labels, its Service, by others": {"any", "robots", nil, false},
	} {
		x := &clusterread.Object{Metadata: clusterread.Metadata{Name: test.name, Labels: test.labels}}
		if test.service != "" {
			var w clusterread.Webhook
			w.ClientConfig.Service.Namespace, w.ClientConfig.Service.Name = "ns", test.service
			x.Webhooks = append(x.Webhooks, w)
		}
		if got := o.ownsConfiguration(x); got != test.want {
			t.Errorf("%s: that the installation owns it is %t, not %t", name, got, test.want)
		}
	}
}
