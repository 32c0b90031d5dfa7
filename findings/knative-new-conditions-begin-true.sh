#!/usr/bin/env bash
# A condition that a release adds to a Knative condition set begins as True on objects that are ready.
#
# Guess: InitializeConditions sets each condition that is missing to Unknown, so an object whose operator now depends on one thing more
# is not Ready before that thing was looked at.
# Seen: if Ready is True, a missing condition is set to True, because all conditions that Ready depends on must have been True. So after
# an upgrade each ready object says that its queue is ready, and nobody has looked at a queue. Such an object stays Ready if its
# reconcile fails before it sets the new condition. A set whose former condition is not True begins the new one as Unknown.
# Version: knative.dev/pkg v0.0.0-20230612155445-74c4be5e935e, of June 2023.
#
# Output seen:
#   former release: Database=True Ready=True
#   new release, ready object: Database=True Queue=True Ready=True
#   former release: Database=Unknown Ready=Unknown
#   new release, other object: Database=Unknown Queue=Unknown Ready=Unknown
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require knative.dev/pkg v0.0.0-20230612155445-74c4be5e935e
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"

	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

func main() {
	former, next := apis.NewLivingConditionSet("Database"), apis.NewLivingConditionSet("Database", "Queue")
	show := func(what string, s *duckv1.Status) {
		fmt.Printf("%s:", what)
		for _, c := range s.Conditions {
			fmt.Printf(" %s=%s", c.Type, c.Status)
		}
		fmt.Println()
	}
	for _, isReady := range []bool{true, false} {
		s, what := &duckv1.Status{}, "new release, other object"
		former.Manage(s).InitializeConditions()
		if isReady {
			former.Manage(s).MarkTrue("Database")
			what = "new release, ready object"
		}
		show("former release", s)
		next.Manage(s).InitializeConditions()
		show(what, s)
	}
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go run . 2>log | tee output || { cat log; exit 1; }
diff <(sed -n '/^# Output seen:/,/^set/s/^#   //p' "$script") output
