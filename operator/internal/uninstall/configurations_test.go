package uninstall

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/live"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// The leader of a program that runs makes a configuration again that is missing, as long as it has the permission. The
// command takes the permission away, so that no configuration is left when the last Pod ends.
func TestLeaderDoesNotBringConfigurationsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		i := manifests.Installation{Program: "robots", Name: "robots", Namespace: "ns"}
		labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{manifests.LabelInstance: "robots", manifests.LabelNamespace: "ns"}}}
		bindings := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, Plural: "clusterrolebindings", ClusterScoped: true}
		configurations := manifests.WebhookConfigurationResources()
		server.Store(bindings, "", "robots.ns", labels)
		server.Store(configurations[0], "", "robots.ns", labels)
		server.Store(configurations[1], "", "others.ns", map[string]any{"metadata": map[string]any{"labels": map[string]any{manifests.LabelInstance: "others", manifests.LabelNamespace: "ns"}}})
		var made atomic.Int64
		server.After(func(_ context.Context, r *wire.Request) error {
			if r.Verb == wire.VerbDelete && r.Resource.Plural == configurations[0].Plural && server.Object("clusterrolebindings", "", "robots.ns") != nil {
				made.Add(1)
				server.Store(configurations[0], "", "robots.ns", labels)
			}
			return nil
		})
		var out bytes.Buffer
		c := &cluster{client: server.Client(), out: &out, limit: time.Minute, resources: []wire.Resource{bindings}}
		f := &findings{
			Options:    &Options{Installation: i, HasWebhooksOrConverters: true, Out: &out},
			deployment: &live.Object{Resource: live.Deployments(), Metadata: live.Metadata{Namespace: "ns", Name: "robots", UID: "1"}},
		}
		if err := removeConfigurations(t.Context(), c, f); err != nil {
			t.Fatal(err)
		}
		if made.Load() != 1 || server.Object(configurations[0].Plural, "", "robots.ns") == nil {
			t.Fatalf("the leader has made the configuration %d times", made.Load())
		}
		if err := removeConfigurationsForGood(t.Context(), c, f); err != nil {
			t.Fatal(err)
		}
		if server.Object(configurations[0].Plural, "", "robots.ns") != nil || server.Object("clusterrolebindings", "", "robots.ns") != nil {
			t.Errorf("the configuration or the permission is still there:\n%s", &out)
		}
		if server.Object(configurations[1].Plural, "", "others.ns") == nil {
			t.Error("the configuration of another installation is gone")
		}
		if n := strings.Count(out.String(), "deleted validatingwebhookconfigurations"); n != 2 {
			t.Errorf("the output is\n%s", &out)
		}
	})
}

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
		x := &live.Object{Metadata: live.Metadata{Name: test.name, Labels: test.labels}}
		if test.service != "" {
			var w live.Webhook
			w.ClientConfig.Service.Namespace, w.ClientConfig.Service.Name = "ns", test.service
			x.Webhooks = append(x.Webhooks, w)
		}
		if got := o.ownsConfiguration(x); got != test.want {
			t.Errorf("%s: that the installation owns it is %t, not %t", name, got, test.want)
		}
	}
}
