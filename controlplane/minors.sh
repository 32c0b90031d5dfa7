#!/bin/sh
# This script writes the requirements of the control planes of other minor versions of Kubernetes: the files
# kubernetes-MINOR.mod and kubernetes-MINOR.sum beside it. It takes the newest published patch of each minor.
#
#   sh controlplane/minors.sh            all minors but that of go.mod
#   sh controlplane/minors.sh 1.36       one of them
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for minor in ${*:-1.35 1.36}; do
	version=$(cd "$folder" && go list -m -versions k8s.io/kubernetes | tr ' ' '\n' | grep "^v$minor\.[0-9]*$" | tail -1)
	[ -n "$version" ] || { echo "minors: there is no published Kubernetes $minor" >&2; exit 1; }
	staging=v0.${version#v1.}
	module=$folder/$minor
	mkdir "$module"
	cp -R ./*.go internal "$module"
	# Kubernetes requires its staging modules at v0.0.0, which exists in its own repository only.
	gomod=$(cd "$folder" && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
	modules=$(awk '$1 ~ /^k8s\.io\// && $2 == "v0.0.0" {print $1}' "$gomod")
	{
		echo "module github.com/yare-go/yare/controlplane"
		grep '^go ' go.mod
		echo "require k8s.io/kubernetes $version"
		for each in $modules; do echo "require $each $staging"; done
	} > "$module/go.mod"
	# A module that this minor does not have would bring newer versions of all others.
	for each in $(sed -n 's/^\t_ "\(k8s\.io\/[^/"]*\).*/\1/p' pins.go); do
		echo "$modules" | grep -qx "$each" || sed -i "\|\"$each|d" "$module/pins.go"
	done
	(cd "$module" && go mod tidy)
	cp "$module/go.mod" "kubernetes-$minor.mod"
	cp "$module/go.sum" "kubernetes-$minor.sum"
	echo "kubernetes-$minor.mod has Kubernetes $version"
done
