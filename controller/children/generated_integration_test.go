package children_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller/children"
	"github.com/yare-go/yare/kube"
)

// Promise 28: a value is generated once. It stays, or there is an error.
func TestGenerated(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	secret := &corev1.Secret{ObjectMeta: s.named("password"), StringData: map[string]string{"user": "a"}}
	calls := 0
	values := map[string]func() string{"password": func() string {
		calls++
		return rand.Text()
	}}
	generated := func(recorded string) (string, error) {
		t.Helper()
		got, err := children.Generated(s.ctx, s.client, shop, secret, recorded, values)
		if err != nil {
			return "", err
		}
		if string(got.Data["user"]) != "a" || !metav1.IsControlledBy(got, shop) || len(got.Data["password"]) < 26 {
			t.Errorf("the Secret has the owners %v and %d keys", got.OwnerReferences, len(got.Data))
		}
		return string(got.Data["password"]), nil
	}
	first, err := generated("")
	if err != nil {
		t.Fatal(err)
	}
	for _, recorded := range []string{"", "password"} {
		if again, err := generated(recorded); again != first || err != nil {
			t.Errorf("the value is %q, was %q, %v", again, first, err)
		}
	}
	if calls != 1 || len(secret.StringData) != 1 {
		t.Errorf("the function was called %d times, and the author's Secret has %v", calls, secret.StringData)
	}
	// Neither the pruning nor another object of the set concerns the Secret.
	set := web
	set.PruneData = true
	s.apply(set, shop, "1", "2")
	s.apply(set, shop, "1")
	if again, err := generated("password"); again != first || err != nil {
		t.Errorf("after a pruning the value is %q, was %q, %v", again, first, err)
	}
	want := func(recorded, text string) {
		t.Helper()
		if _, err := generated(recorded); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want %q", err, text)
		}
	}
	want("former", `the status names the Secret "former"`)
	if _, err := kube.Namespaced[corev1.Secret](s.client, s.namespace).Patch(t.Context(), "password",
		kube.JSONPatch(kube.RemoveAt("/data/password"))); err != nil {
		t.Fatal(err)
	}
	want("", `no value for the key "password"`)
	want("password", `no value for the key "password"`)
	if err := kube.Namespaced[corev1.Secret](s.client, s.namespace).Delete(t.Context(), "password"); err != nil {
		t.Fatal(err)
	}
	want("password", "the Secret is gone")
	if calls != 1 {
		t.Errorf("the function was called %d times", calls)
	}
}

// Promise 28: the Secret of somebody else is no place for a value, also if it comes after the first look.
func TestGeneratedInAForeignSecret(t *testing.T) {
	s := onStreet(t)
	one, two := s.shop("one"), s.shop("two")
	values := map[string]func() string{"password": rand.Text}
	theirs := create(t, s.client, &corev1.Secret{ObjectMeta: s.named("theirs"), StringData: map[string]string{"password": "p"}})
	late := map[string]func() string{"password": func() string {
		create(t, s.client, kube.OwnedBy(one, &corev1.Secret{ObjectMeta: s.named("late"), StringData: map[string]string{"password": "p"}}))
		return rand.Text()
	}}
	if _, err := children.Generated(s.ctx, s.client, one, &corev1.Secret{ObjectMeta: s.named("one")}, "", values); err != nil {
		t.Error(err)
	}
	for name, generate := range map[string]map[string]func() string{"theirs": values, "one": values, "late": late} {
		if _, err := children.Generated(s.ctx, s.client, two, &corev1.Secret{ObjectMeta: s.named(name)}, "", generate); !errors.Is(err, kube.ErrForeignChild) {
			t.Errorf("%s: %v", name, err)
		}
	}
	now, err := kube.Get[corev1.Secret](t.Context(), s.client, s.namespace, "theirs")
	if err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the Secret was changed, %v", err)
	}
	// The owner itself gets what was created meanwhile.
	got, err := children.Generated(s.ctx, s.client, one, &corev1.Secret{ObjectMeta: s.named("late")}, "", values)
	if err != nil || string(got.Data["password"]) != "p" {
		t.Errorf("the value is %q, %v", got.Data, err)
	}
	if _, err := children.Generated(s.ctx, s.client, one, &corev1.Secret{ObjectMeta: s.named("empty")}, "",
		map[string]func() string{"password": func() string { return "" }}); err == nil || !strings.Contains(err.Error(), "empty value") {
		t.Errorf("an empty value: %v", err)
	}
	all, err := kube.List[corev1.Secret](t.Context(), s.client, s.namespace)
	if err != nil || len(all) != 3 || slices.ContainsFunc(all, func(o *corev1.Secret) bool { return o.Name == "empty" }) {
		t.Errorf("there are %d Secrets, %v", len(all), err)
	}
}
