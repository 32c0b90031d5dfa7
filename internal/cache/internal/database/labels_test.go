package database

import (
	"maps"
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// Every selector matches Labels as it matches a Set of apimachinery.
var _ labels.Labels = Labels{}

// newLabels returns the Labels in a map.
func newLabels(m map[string]string) Labels {
	var l labelWriter
	for k, v := range m {
		l.add([]byte(k), []byte(v))
	}
	keys, values := l.finish()
	if len(keys) == 0 {
		return Labels{}
	}
	return Labels{keys: unique.Make(string(keys)), values: string(values)}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	sets := []map[string]string{
		nil, {"app": "web"}, {"app": ""}, {"b": "2", "a": "1", "c": "3"}, {"app.kubernetes.io/name": "web", "tier": "front"},
	}
	for _, set := range sets {
		l := newLabels(set)
		if all := maps.Collect(l.All()); !maps.Equal(all, set) {
			t.Errorf("%v became %v", set, all)
		}
		for _, key := range []string{"", "a", "app", "b", "tier", "zzz"} {
			v, ok := set[key]
			if got, has := l.Lookup(key); got != v || has != ok || l.Has(key) != ok || l.Get(key) != v {
				t.Errorf("Lookup(%q) in %v is %q, %t", key, set, got, has)
			}
		}
		for _, selector := range []string{"", "app", "!app", "app=web", "app!=web", "a in (1,2),c", "tier notin (back)"} {
			s, err := labels.Parse(selector)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.Matches(l), s.Matches(labels.Set(set)); got != want {
				t.Errorf("%q matches %v: %t, want %t", selector, set, got, want)
			}
		}
		for _, other := range sets {
			if got, want := l == newLabels(other), maps.Equal(set, other); got != want {
				t.Errorf("%v == %v: %t", set, other, got)
			}
		}
	}
}
