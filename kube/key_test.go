package kube_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

func TestKeysAndNamesOfOtherLibraries(t *testing.T) {
	t.Parallel()
	name := types.NamespacedName{Namespace: "default", Name: "web"}
	if key := kube.KeyOf(name); key != (kube.Key{Namespace: "default", Name: "web"}) || key.NamespacedName() != name {
		t.Errorf("%v became %v, and %v", name, key, key.NamespacedName())
	}
}
