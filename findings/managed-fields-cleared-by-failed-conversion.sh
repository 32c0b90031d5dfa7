#!/usr/bin/env bash
# The field manager of API servers (k8s.io/apimachinery, util/managedfields) handles a conversion that fails, for example because the
# conversion webhook of a definition does not answer, by clearing metadata.managedFields in 0.36 (Kubernetes 1.36). 0.37 keeps them.
#
# Guess: a write that needs a conversion fails, or leaves managedFields as they are.
# Seen: up to 0.36 the write succeeds, and all managers lose what they own, those of other versions and of the written one. The
# only trace is a line in the log of the server. A later apply that leaves out a field no longer removes that field.
#
# Output seen:
#   k8s.io/apimachinery v0.36.3: managers []
#   k8s.io/apimachinery v0.37.2: managers [operator team]
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// broken converts nothing.
type broken struct{ runtime.ObjectConvertor }

func (broken) ConvertToVersion(runtime.Object, runtime.GroupVersioner) (runtime.Object, error) {
	return nil, errors.New("the conversion webhook does not answer")
}

func main() {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme),
		broken{scheme.Scheme}, scheme.Scheme, scheme.Scheme, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	entry := func(name, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: name, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{
		entry("operator", "v2", `{"f:data":{"f:key":{}}}`), entry("team", "v1", `{"f:data":{"f:other":{}}}`),
	}}, Data: map[string]string{"key": "value", "other": "value"}}
	live.APIVersion, live.Kind = "v1", "ConfigMap"
	changed := live.DeepCopy()
	changed.Labels = map[string]string{"team": "blue"}
	after := manager.UpdateNoErrors(live, changed, "user") // as the server does
	var names []string
	for _, e := range after.(*corev1.ConfigMap).ManagedFields {
		names = append(names, e.Manager)
	}
	fmt.Printf("k8s.io/apimachinery %s: managers %v\n", os.Args[1], names)
}
GO
for version in v0.36.3 v0.37.2; do
	cat >go.mod <<MOD
module example.com/finding

go 1.26.0

require (
	k8s.io/api $version
	k8s.io/apimachinery $version
	k8s.io/client-go $version
)
MOD
	rm -f go.sum
	go mod tidy >log 2>&1 || { cat log; exit 1; }
	go run . "$version" 2>log || { cat log; exit 1; }
done | tee output
diff <(sed -n '/^# Output seen:/,/^set/s/^#   //p' "$script") output
