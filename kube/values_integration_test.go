package kube_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// chest is a kind with free content.
type chest = kube.CustomResource[chestSpec, chestStatus]

type chestSpec struct {
	Note   string         `json:"note,omitempty"`
	Values map[string]any `json:"values,omitempty" crd:"preserveUnknownFields"`
}

type chestStatus struct {
	Opened     int                `json:"opened"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (chestSpec) Definition() kube.Definition {
	return kube.Definition{Group: "kube-test.yare.dev", Version: "v1", Kind: "Chest"}
}

// Bug: a modification of another field changed the identifier of a user from 9007199254740993 to 9007199254740992.
func TestModifyKeepsIntegersOfFreeContent(t *testing.T) {
	t.Parallel()
	const id = int64(9007199254740993)
	cluster := yaretest.Shared(t)
	yaretest.Define[chest](t, cluster)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	api := kube.Namespaced[chest](c, namespace)
	raw := kube.Dynamic(c, api.Resource(), namespace)
	must(raw.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kube-test.yare.dev/v1", "kind": "Chest", "metadata": map[string]any{"name": "a", "namespace": namespace},
		"spec": map[string]any{"values": map[string]any{"id": id, "ratio": 1.5}},
	}}))(t)
	got := must(api.Modify(ctx, "a", func(c *chest) error { c.Spec.Note = "seen"; return nil }))(t)
	if got.Spec.Values["id"] != id || got.Spec.Values["ratio"] != 1.5 {
		t.Errorf("decoded %#v", got.Spec.Values)
	}
	live := must(raw.Get(ctx, "a"))(t)
	if stored, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "values", "id"); stored != id {
		t.Errorf("the identifier %d has become %v", id, stored)
	}
}

// Bug: a condition with the text of a long error made the server refuse the whole status.
func TestStatusWithALongMessage(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[chest](t, cluster)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	api := kube.Namespaced[chest](c, namespace)
	for name, message := range map[string]string{
		"long": strings.Repeat("a line of a log; ", 2000), "runes": strings.Repeat("é", 33000), "broken": strings.Repeat("\xffa", 33000),
	} {
		o := must(api.Create(ctx, &chest{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}))(t)
		o.Status.Opened = 3
		kube.SetCondition(ctx, &o.Status.Conditions, o, "Ready", false, "Failed", message)
		if err := c.ApplyStatus(ctx, o); err != nil {
			t.Errorf("%s: the status is refused: %.300s", name, err)
		}
	}
}

// Bug: a password that was applied in stringData stayed in the Secret when a later apply left it out, because the server
// recorded the fields of stringData as owned, and not those of data.
func TestKeyOfStringDataThatIsLeftOutIsRemoved(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	apply := func(texts map[string]string, data map[string][]byte) *corev1.Secret {
		t.Helper()
		return must(kube.Apply(ctx, c, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: namespace}, StringData: texts, Data: data,
		}))(t)
	}
	apply(map[string]string{"user": "u", "password": "p"}, map[string][]byte{"user": []byte("overruled"), "key": []byte("k")})
	live := must(kube.Get[corev1.Secret](ctx, c, namespace, "login"))(t)
	if string(live.Data["user"]) != "u" || string(live.Data["password"]) != "p" || string(live.Data["key"]) != "k" {
		t.Errorf("the Secret has %q", live.Data)
	}
	live = apply(map[string]string{"user": "v"}, nil)
	if keys := slices.Collect(maps.Keys(live.Data)); !slices.Equal(keys, []string{"user"}) || string(live.Data["user"]) != "v" {
		t.Errorf("after an apply of the user alone the Secret has %q", live.Data)
	}
	live = apply(nil, nil)
	if len(live.Data) != 0 {
		t.Errorf("after an apply of nothing the Secret has %q", live.Data)
	}
}
