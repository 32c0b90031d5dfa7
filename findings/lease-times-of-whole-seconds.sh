#!/usr/bin/env bash
# A Lease that Python has read cannot be written back if its renewTime is a whole second.
#
# Guess: a time is a time. lightkube 1.0.1 and the official client (kubernetes 37.0.2) read renewTime as a datetime, and write
# it in RFC 3339. RFC 3339 makes the fraction of a second optional.
# Seen: both leave the fraction out when it is zero. The type MicroTime of apimachinery 0.37.2 wants exactly six
# digits, so an API server answers 400 to the unchanged Lease. One renewal in a million has such a time by chance.
# Programs that round their times to seconds have it always.
#
# Output seen:
#   lightkube: 2026-01-01T00:00:00Z: parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"
#   kubernetes: 2026-01-01T00:00:00+00:00: parsing time "2026-01-01T00:00:00+00:00" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "+00:00" as ".000000"
#   untouched: 2026-01-01T00:00:00.000000Z: accepted
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q lightkube==1.0.1 kubernetes==37.0.2
mkdir "$folder/go"
cat >"$folder/go/main.go" <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for i := 1; i < len(os.Args); i += 2 {
		var read metav1.MicroTime
		quoted, _ := json.Marshal(os.Args[i+1])
		result := "accepted"
		if err := json.Unmarshal(quoted, &read); err != nil {
			result = err.Error()
		}
		fmt.Printf("%s: %s: %s\n", os.Args[i], os.Args[i+1], result)
	}
}
GO
(cd "$folder/go" && go mod init finding && go get k8s.io/apimachinery@v0.37.2 && go mod tidy) >/dev/null 2>&1
"$folder/venv/bin/python" - >"$folder/times" <<'PYTHON'
import json
import kubernetes.client
from lightkube.resources.coordination_v1 import Lease

lease = {"metadata": {"name": "leader"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
print("lightkube", Lease.from_dict(lease).to_dict()["spec"]["renewTime"])
client = kubernetes.client.ApiClient()
read = client.deserialize(json.dumps(lease), "V1Lease", "application/json")
print("kubernetes", client.sanitize_for_serialization(read)["spec"]["renewTime"])
print("untouched", lease["spec"]["renewTime"])
PYTHON
# shellcheck disable=SC2046 # words
(cd "$folder/go" && go run . $(cat "$folder/times")) >"$folder/seen"
cat "$folder/seen"
diff <(sed -n 's/^#   //p' "$0") "$folder/seen" && echo "as before"
