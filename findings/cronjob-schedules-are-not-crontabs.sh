#!/usr/bin/env bash
# The schedule of a CronJob reads a crontab line in its own way: github.com/robfig/cron/v3 v3.0.1, which Kubernetes uses.
#
# Guess: a line of a crontab means the same in spec.schedule.
# Seen: the 7 for Sunday is an error, although cron of Debian (followed by cronsim 2.8), croniter 7.0.0 and the JavaScript
# parsers accept it. If both a day of the month and a weekday are given, Debian's cron wants both of them when one field begins
# with a star, as */2 does. For the CronJob */2 is no star, so one of them is enough: "*/2 ... 1" (Mondays on odd days) runs
# on every odd day and on every Monday. croniter reads it as the CronJob does.
#
# Output seen, from 2026-03-01 on:
#   0 0 * * 7       cronjob: end of range (7) above maximum (6): 7
#   0 0 * * 7       cronsim: 08 15 22 29
#   0 0 * * 7       croniter: 08 15 22 29
#   0 0 */2 * 1     cronjob: 02 03 05 07
#   0 0 */2 * 1     cronsim: 09 23 13 27
#   0 0 */2 * 1     croniter: 02 03 05 07
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q croniter==7.0.0 cronsim==2.8
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	schedule, err := cron.ParseStandard(os.Args[1])
	if err != nil {
		fmt.Printf("%-15s cronjob: %v\n", os.Args[1], err)
		return
	}
	fmt.Printf("%-15s cronjob:", os.Args[1])
	for i, at := 0, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC); i < 4; i++ {
		at = schedule.Next(at)
		fmt.Print(at.Format(" 02"))
	}
	fmt.Println()
}
GO
{ go mod init finding && go get github.com/robfig/cron/v3@v3.0.1; } >/dev/null 2>&1
for schedule in '0 0 * * 7' '0 0 */2 * 1'; do
	go run . "$schedule"
	venv/bin/python - "$schedule" <<'PYTHON'
import datetime, itertools, sys
from croniter import croniter
from cronsim import CronSim

start = datetime.datetime(2026, 3, 1)
days = [f"{each:%d}" for each in itertools.islice(CronSim(sys.argv[1], start), 4)]
print(f"{sys.argv[1]:15} cronsim:", *days)
each = croniter(sys.argv[1], start)
print(f"{sys.argv[1]:15} croniter:", *[f"{each.get_next(datetime.datetime):%d}" for _ in range(4)])
PYTHON
done >seen
cat seen
diff <(sed -n 's/^#   //p' "$script") seen && echo "as before"
