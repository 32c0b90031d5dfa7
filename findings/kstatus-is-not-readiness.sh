#!/usr/bin/env bash
# kstatus (sigs.k8s.io/cli-utils 0.37.2) says Current of objects that do not work, and InProgress of one that rests.
#
# Guess: Current means that the object does what its spec asks. Helm 4, Flux and cli-utils wait for it.
# Seen: conditions are read for few kinds. An APIService that is not available, a LoadBalancer without an address, a
# StatefulSet without Pods whose strategy is OnDelete, and a custom resource whose only condition is Available=False are
# Current. A DaemonSet with the strategy OnDelete is InProgress until somebody deletes its Pods, although the same strategy of
# a StatefulSet is Current. Of the conditions Reconciling and Stalled the first one in the list decides. The
# observedGeneration of a condition is not read.
#
# Output seen:
#   APIService, Available=False                      Current
#   Service of type LoadBalancer, no address         Current
#   StatefulSet, OnDelete, 0 of 2 replicas           Current
#   DaemonSet, OnDelete, all Pods ready, 0 updated   InProgress
#   custom resource, Available=False                 Current
#   custom resource, Ready=True of generation 1 of 2 Current
#   custom resource, Reconciling then Stalled        InProgress
#   custom resource, Stalled then Reconciling        Failed
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	for _, each := range []struct{ what, object string }{
		{"APIService, Available=False", `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "a"},
			"status": {"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}}`},
		{"Service of type LoadBalancer, no address", `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
			"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, "status": {"loadBalancer": {}}}`},
		{"StatefulSet, OnDelete, 0 of 2 replicas", `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "generation": 1},
			"spec": {"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, "status": {"observedGeneration": 1, "replicas": 0}}`},
		{"DaemonSet, OnDelete, all Pods ready, 0 updated", `{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", "generation": 2},
			"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"observedGeneration": 2, "desiredNumberScheduled": 3,
			"currentNumberScheduled": 3, "updatedNumberScheduled": 0, "numberAvailable": 3, "numberReady": 3}}`},
		{"custom resource, Available=False", `{"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a"},
			"status": {"conditions": [{"type": "Available", "status": "False"}]}}`},
		{"custom resource, Ready=True of generation 1 of 2", `{"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a", "generation": 2},
			"status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}}`},
		{"custom resource, Reconciling then Stalled", `{"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a"},
			"status": {"conditions": [{"type": "Reconciling", "status": "True"}, {"type": "Stalled", "status": "True"}]}}`},
		{"custom resource, Stalled then Reconciling", `{"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a"},
			"status": {"conditions": [{"type": "Stalled", "status": "True"}, {"type": "Reconciling", "status": "True"}]}}`},
	} {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON([]byte(each.object)); err != nil {
			panic(err)
		}
		result, err := status.Compute(&object)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-48s %s\n", each.what, result.Status)
	}
}
GO
{ go mod init finding && go get sigs.k8s.io/cli-utils@v0.37.2 && go mod tidy; } >/dev/null 2>&1
go run . >seen
cat seen
diff <(sed -n 's/^#   //p' "$script") seen && echo "as before"
