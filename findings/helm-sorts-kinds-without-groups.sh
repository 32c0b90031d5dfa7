#!/usr/bin/env bash
# Helm 3.22.0 and 4.3.1 order a custom kind like the built-in kind of the same name, and Helm 4 deletes webhook
# configurations before all else.
#
# Guess: an uninstall deletes objects of custom kinds first, then what serves them, and the definitions last. Or at least
# all custom kinds have one place.
# Seen: the order is by the name of the kind alone. An object of the kind CronJob in the group batch.example.com goes
# before the Deployment that cleans it up, an object of the kind Widget goes after the Deployment and after its own
# definition. Helm 4 deletes ValidatingWebhookConfigurations first, while the program that keeps them still runs. Helm 3 has
# no place for them, so they go last.
#
# Output seen:
#   Helm 3: Service CronJob.batch.example.com Deployment CustomResourceDefinition Namespace ValidatingWebhookConfiguration Widget.example.com
#   Helm 4: ValidatingWebhookConfiguration Service CronJob.batch.example.com Deployment CustomResourceDefinition Namespace Widget.example.com
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
script=$(realpath "$0")
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	v3 "helm.sh/helm/v3/pkg/releaseutil"
	v4 "helm.sh/helm/v4/pkg/release/v1/util"
)

func name(version, kind string) string {
	if group, _, _ := strings.Cut(version, "/"); strings.HasSuffix(group, "example.com") {
		return " " + kind + "." + group
	}
	return " " + kind
}

func main() {
	files := make(map[string]string)
	for i, object := range []string{
		"apps/v1 Deployment", "apiextensions.k8s.io/v1 CustomResourceDefinition", "batch.example.com/v1 CronJob", "example.com/v1 Widget",
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "v1 Service", "v1 Namespace",
	} {
		version, kind, _ := strings.Cut(object, " ")
		files[fmt.Sprintf("chart/templates/%d.yaml", i)] = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a}\n", version, kind)
	}
	_, three, err := v3.SortManifests(files, nil, v3.UninstallOrder)
	if err != nil {
		panic(err)
	}
	fmt.Print("Helm 3:")
	for _, each := range three {
		fmt.Print(name(each.Head.Version, each.Head.Kind))
	}
	_, four, err := v4.SortManifests(files, nil, v4.UninstallOrder)
	if err != nil {
		panic(err)
	}
	fmt.Print("\nHelm 4:")
	for _, each := range four {
		fmt.Print(name(each.Head.Version, each.Head.Kind))
	}
	fmt.Println()
}
GO
{ go mod init finding && go get helm.sh/helm/v3@v3.22.0 helm.sh/helm/v4@v4.3.1 && go mod tidy; } >/dev/null 2>&1
go run . >seen
cat seen
diff <(sed -n 's/^#   //p' "$script") seen && echo "as before"
