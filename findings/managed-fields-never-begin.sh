#!/usr/bin/env bash
# The field manager of API servers (k8s.io/apimachinery 0.37.2, util/managedfields) never begins to record who writes an object
# that was created without any field: no label, no data, only a name.
#
# Guess: each write is recorded in metadata.managedFields, by its field manager.
# Seen: whether an object is recorded is decided at its creation. An empty set of fields is no entry, and an object without
# entries is not recorded by later updates either, until the first server-side apply. An installer that creates an empty object,
# which programs fill later, so hides all of them. A webhook configuration without entries and labels is such an object.
#
# Output seen:
#   created with labels map[] then edited: managers []
#   created with labels map[team:a] then edited: managers [creator editor]
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme),
		scheme.Scheme, scheme.Scheme, scheme.Scheme, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	for _, labels := range []map[string]string{nil, {"team": "a"}} {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}}
		made.APIVersion, made.Kind = "v1", "ConfigMap"
		stored, err := manager.Update(&corev1.ConfigMap{TypeMeta: made.TypeMeta}, made, "creator")
		if err != nil {
			panic(err)
		}
		live := stored.(*corev1.ConfigMap)
		live.UID = "u" // the server gives it one
		changed := live.DeepCopy()
		changed.Data = map[string]string{"key": "value"}
		after, err := manager.Update(live, changed, "editor")
		if err != nil {
			panic(err)
		}
		var names []string
		for _, e := range after.(*corev1.ConfigMap).ManagedFields {
			names = append(names, e.Manager)
		}
		fmt.Println("created with labels", labels, "then edited: managers", names)
	}
}
GO
cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
)
MOD
go mod tidy >log 2>&1 || { cat log; exit 1; }
go run . | tee output
diff <(sed -n '/^# Output seen:/,/^set/s/^#   //p' "$script") output
