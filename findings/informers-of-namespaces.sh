#!/usr/bin/env bash
# The informers of controller-runtime 0.25 are those of client-go, unless the cache is narrowed to namespaces.
#
# Guess: cache.GetInformer returns a SharedIndexInformer of client-go behind its smaller interface. Libraries assert that type to
# read the store, its last resource version or its transform. Cluster API 1.14 does so, with an error where the assertion fails.
# Seen: with DefaultNamespaces, also with a single one, the informer has a private type, and the assertion fails. ByObject with
# namespaces has this effect on one kind.
#
# Output seen:
#   all namespaces: ConfigMap true, Secret true
#   one namespace: ConfigMap false, Secret false
#   two namespaces: ConfigMap false, Secret false
#   Secrets of one namespace: ConfigMap true, Secret false
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
	sigs.k8s.io/controller-runtime v0.25.2
)
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	one, two := map[string]cache.Config{"a": {}}, map[string]cache.Config{"a": {}, "b": {}}
	for _, each := range []struct {
		name    string
		options cache.Options
	}{
		{"all namespaces", cache.Options{}},
		{"one namespace", cache.Options{DefaultNamespaces: one}},
		{"two namespaces", cache.Options{DefaultNamespaces: two}},
		{"Secrets of one namespace", cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: one}}}},
	} {
		each.options.Scheme, each.options.Mapper, each.options.HTTPClient = scheme.Scheme, mapper, http.DefaultClient
		made, err := cache.New(&rest.Config{Host: "http://127.0.0.1:1"}, each.options) // nothing is started
		if err != nil {
			panic(err)
		}
		is := func(object client.Object) bool {
			informer, err := made.GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
			if err != nil {
				panic(err)
			}
			_, isShared := informer.(toolscache.SharedIndexInformer)
			return isShared
		}
		fmt.Printf("%s: ConfigMap %t, Secret %t\n", each.name, is(&corev1.ConfigMap{}), is(&corev1.Secret{}))
	}
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go run . 2>log | tee output || { cat log; exit 1; }
diff <(sed -n '/^# Output seen:/,/^set/s/^#   //p' "$script") output
