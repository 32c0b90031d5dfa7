#!/usr/bin/env bash
# The official Python client 37.0.2 cannot read Events of events.k8s.io/v1 that were recorded through core/v1.
#
# Guess: a client of Kubernetes 1.37 reads what an API server of Kubernetes 1.37 answers.
# Seen: eventTime is a required member of its model, and may not be null. Go's type has no omitempty at this member, so an
# API server answers null for each Event that was recorded without it. The kubelet and most controllers record through
# core/v1, with firstTimestamp and lastTimestamp, and without eventTime. One such Event makes
# EventsV1Api.list_event_for_all_namespaces fail as a whole. The model of core/v1 reads the same Event.
#
# Output seen:
#   the answer of the API server: "eventTime": null
#   CoreV1Event: BackOff
#   EventsV1Event: 1 validation error, eventTime: Input should be a valid datetime
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q kubernetes==37.0.2
mkdir "$folder/go"
cat >"$folder/go/main.go" <<'GO'
package main

import (
	"encoding/json"
	"os"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	event := eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.17"}, Type: "Warning", Reason: "BackOff"}
	_ = json.NewEncoder(os.Stdout).Encode(event)
}
GO
(cd "$folder/go" && go mod init finding && go get k8s.io/api@v0.37.2 k8s.io/apimachinery@v0.37.2 && go mod tidy) >/dev/null 2>&1
(cd "$folder/go" && go run .) >"$folder/event.json"
"$folder/venv/bin/python" - "$folder/event.json" >"$folder/seen" <<'PYTHON'
import json, sys
import kubernetes.client

text = open(sys.argv[1]).read()
print('the answer of the API server: "eventTime":', json.dumps(json.loads(text)["eventTime"]))
client = kubernetes.client.ApiClient()
core = json.dumps({"metadata": {"name": "web.17"}, "involvedObject": {}, "reason": "BackOff", "eventTime": None})
print("CoreV1Event:", client.deserialize(core, "CoreV1Event", "application/json").reason)
try:
    print("EventsV1Event:", client.deserialize(text, "EventsV1Event", "application/json").reason)
except ValueError as err:
    first = err.errors()[0]
    print(f"EventsV1Event: {len(err.errors())} validation error, {first['loc'][0]}: {first['msg']}")
PYTHON
cat "$folder/seen"
diff <(sed -n 's/^#   //p' "$0") "$folder/seen" && echo "as before"
