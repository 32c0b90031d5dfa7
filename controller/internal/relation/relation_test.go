package relation

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Each relation finds the keys of one object.
func TestKeys(t *testing.T) {
	t.Parallel()
	index := kube.NewIndex("plants", func(*corev1.ConfigMap) []string { return nil })
	to := ReconciledKind{
		Resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Kind: "Garden"}},
		Referrers: func(_ *kube.Index, _, namespace, value string) []Key {
			return []Key{{Key: kube.Key{Namespace: namespace, Name: "refers to " + value}}}
		},
		KeyOfUID: func(_ string, uid types.UID) (kube.Key, bool) {
			return kube.Key{Namespace: "n", Name: "eden"}, uid == "1"
		},
	}
	rose := Object{
		Record: cache.Record{Namespace: "n", Name: "rose", Owners: []kube.Owner{
			{Group: "example.com", Kind: "Garden", Name: "eden", UID: "1", Controller: true},
			{Group: "example.com", Kind: "Garden", Name: "hortus", UID: "2"},
			{Group: "example.org", Kind: "Garden", Name: "other group", UID: "3", Controller: true},
		}},
		Content: func() ([]byte, error) { return nil, nil },
	}
	in := func(namespace, name string, uid types.UID) Key {
		return Key{Key: kube.Key{Namespace: namespace, Name: name}, UID: uid}
	}
	returning := func(keys ...kube.Key) Map {
		return Map{Function: func(context.Context, *kube.Client, []byte) ([]kube.Key, error) { return keys, nil }}
	}
	for name, test := range map[string]struct {
		relation Relation
		want     []Key
		isError  bool
	}{
		"self":                       {Self{}, []Key{in("n", "rose", "")}, false},
		"controlling owner":          {Owner{}, []Key{in("n", "eden", "1")}, false},
		"any owner":                  {Owner{IsAny: true}, []Key{in("n", "eden", "1"), in("n", "hortus", "2")}, false},
		"no label":                   {Label{Name: "l"}, nil, false},
		"reference":                  {Reference{By: index}, []Key{in("n", "refers to rose", ""), in("", "refers to n/rose", "")}, false},
		"map function":               {returning(kube.Key{Namespace: "m", Name: "a"}, kube.Key{}), []Key{in("m", "a", "")}, false},
		"map function, no namespace": {returning(kube.Key{Name: "a"}, kube.Key{Namespace: "m", Name: "b"}), []Key{in("m", "b", "")}, true},
	} {
		got, err := test.relation.Keys(t.Context(), rose, to)
		if !slices.Equal(got, test.want) || test.isError != (err != nil) || IsLasting(err) != test.isError {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestUIDIndex(t *testing.T) {
	t.Parallel()
	x := NewUIDIndex()
	k := kube.Key{Cluster: "c", Namespace: "n", Name: "eden"}
	x.Add(k, "1")
	if got, ok := x.Key("c", "1"); !ok || got != k {
		t.Errorf("%v, %t", got, ok)
	}
	if _, ok := x.Key("other", "1"); ok {
		t.Error("the object of another cluster was found")
	}
	x.Remove(k, "1")
	if _, ok := x.Key("c", "1"); ok {
		t.Error("a removed object was found")
	}
}
