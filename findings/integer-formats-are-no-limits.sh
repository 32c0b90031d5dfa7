#!/usr/bin/env bash
# The validation of custom resources (k8s.io/apiextensions-apiserver) does not limit an integer by "format: int32" in 0.35 (Kubernetes
# 1.35). From 0.36 on it does.
#
# Guess: a field of the type integer with the format int32, as generators print it for an int32 of Go, takes values of 32 bits.
# Seen: up to 0.35 each integer is accepted, and a client in Go cannot decode the object, nor a list with it. The same definition
# refuses the value on a newer server, so objects that are stored become invalid by an upgrade of the cluster.
#
# Output seen:
#   k8s.io/apiextensions-apiserver v0.35.4: 3000000000 with the format int32: 0 errors
#   k8s.io/apiextensions-apiserver v0.36.3: 3000000000 with the format int32: 1 errors
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

func main() {
	schema := &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"replicas": {Type: "integer", Format: "int32"}}},
	}}
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		panic(err)
	}
	object := map[string]any{"spec": map[string]any{"replicas": int64(3000000000)}}
	errs := validation.ValidateCustomResource(nil, object, validator)
	fmt.Printf("k8s.io/apiextensions-apiserver %s: 3000000000 with the format int32: %d errors\n", os.Args[1], len(errs))
}
GO
for version in v0.35.4 v0.36.3; do
	cat >go.mod <<MOD
module example.com/finding

go 1.26.0

require k8s.io/apiextensions-apiserver $version
MOD
	rm -f go.sum
	go mod tidy >log 2>&1 || { cat log; exit 1; }
	go run . "$version" 2>log || { cat log; exit 1; }
done | tee output
diff <(sed -n '/^# Output seen:/,/^set/s/^#   //p' "$script") output
