#!/usr/bin/env bash
# A column of a CustomResourceDefinition shows the first value only, cuts fractions, and hides values of other types.
#
# Guess: a column whose JSONPath finds several values shows all of them, as kubectl get -o custom-columns does with the same path. A
# column of the type integer rounds, and one of the type number shows an integer as it is. A value of another type is shown as text.
# Seen, with the table of the API server of Kubernetes 1.37 (k8s.io/apiextensions-apiserver v0.37.2): the first value without a mark
# that there are more. 2.7 becomes 2 in an integer column. A large integer loses digits in a number column, and is right in a string
# column. The text "5" in an integer column and the text "true" in a boolean column are empty cells. A date without a time is <invalid>.
#
# Output seen:
#   .spec.items[*].name string: x
#   .spec.list[*] string: a
#   .spec.list string: ["a","b"]
#   .spec.fraction integer: 2
#   .spec.large number: 1.2345678901234568e+16
#   .spec.large string: 12345678901234567
#   .spec.digit integer: <nil>
#   .spec.flag boolean: <nil>
#   .spec.truth string: true
#   .spec.day date: <invalid>
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	k8s.io/apiextensions-apiserver v0.37.2
	k8s.io/apimachinery v0.37.2
)
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"items":    []any{map[string]any{"name": "x"}, map[string]any{"name": "y"}},
			"list":     []any{"a", "b"},
			"fraction": 2.7, "large": int64(12345678901234567), "digit": "5", "flag": "true", "truth": true, "day": "2020-01-01",
		},
	}}
	for _, each := range []string{
		".spec.items[*].name string", ".spec.list[*] string", ".spec.list string", ".spec.fraction integer", ".spec.large number",
		".spec.large string", ".spec.digit integer", ".spec.flag boolean", ".spec.truth string", ".spec.day date",
	} {
		path, kind, _ := strings.Cut(each, " ")
		convertor, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{{Name: "Value", JSONPath: path, Type: kind}})
		if err != nil {
			panic(err)
		}
		table, err := convertor.ConvertToTable(context.Background(), object, nil)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %v\n", each, table.Rows[0].Cells[1])
	}
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go run . 2>log | tee output || { cat log; exit 1; }
diff <(sed -n '/^# Output seen:/,/^set/s/^#   //p' "$script") output
