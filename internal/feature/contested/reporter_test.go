package contested_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube/wire"
)

// observed counts what a Reporter reports.
type observed struct{ all, contested int }

func (o *observed) ObserveSetBack(_ wire.Ref, _ contested.Field, isContested bool) {
	o.all++
	if isContested {
		o.contested++
	}
}

// A field that is set back six times in ten minutes is logged once in an hour, with the manager who changes it.
func TestReporter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := new(observed)
		r := contested.NewReporter(slog.New(slog.NewTextHandler(&log, nil)), o)
		object := wire.Ref{Namespace: "shop", Name: "web"}
		object.Resource.Kind = "Deployment"
		field := []contested.Field{{Path: ".spec.replicas", Manager: "scaler"}}
		report := func(times int, period time.Duration) {
			for i := range times {
				object.UID = "another" // a new object of the name is the same contest
				if i%2 == 0 {
					object.UID = "one"
				}
				r.Report(object, field)
				time.Sleep(period)
			}
		}
		report(20, 3*time.Minute) // four in ten minutes
		if o.all != 20 || o.contested != 0 || log.Len() > 0 {
			t.Fatalf("seldom: %+v, the log is %s", *o, log.String())
		}
		time.Sleep(time.Hour)
		report(59, time.Minute)
		if o.contested != 1 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), ".spec.replicas") ||
			!strings.Contains(log.String(), "scaler") || !strings.Contains(log.String(), "shop/web") {
			t.Fatalf("often: %+v, the log is %s", *o, log.String())
		}
		report(10, time.Minute)
		if o.contested != 2 {
			t.Errorf("an hour later: %+v", *o)
		}
	})
}

// Many contested fields take bounded memory, and the newest ones are found once the old ones have come to rest.
func TestReporterOfManyFields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := new(observed)
		r := contested.NewReporter(slog.New(slog.DiscardHandler), o)
		for i := range 5000 {
			r.Report(wire.Ref{Name: strconv.Itoa(i)}, []contested.Field{{Path: ".spec"}})
		}
		time.Sleep(11 * time.Minute)
		for range 6 {
			r.Report(wire.Ref{Name: "new"}, []contested.Field{{Path: ".spec"}})
		}
		if o.contested != 1 {
			t.Errorf("%+v", *o)
		}
	})
}
