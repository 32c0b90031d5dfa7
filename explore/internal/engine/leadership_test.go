package engine

import (
	"testing"
	"time"

	"github.com/yare-go/yare/internal/proxy"
)

// at returns a time of the tests.
func at(second int) time.Time { return time.Unix(1000+int64(second), 0) }

// leaseWrite returns a write of the Lease, which is answered a second after it is sent.
func leaseWrite(session, holder, version string, second int) proxy.RequestRecord {
	return proxy.RequestRecord{
		Point: proxy.Point{Verb: "update", Resource: proxy.Leases, Name: "operator"}, Session: session,
		Code: 200, Sent: at(second), Ended: at(second + 1), Version: version, Holder: holder, LeaseDuration: 15 * time.Second,
	}
}

// write returns a write of an object.
func write(session, verb, resource, version string, second int) proxy.RequestRecord {
	return proxy.RequestRecord{
		Point: proxy.Point{Verb: verb, Resource: resource, Name: "web", Step: 1}, Session: session,
		Code: 200, Sent: at(second), Ended: at(second), Version: version,
	}
}

// A write of a former leader is late if the server has carried it out after the next leader has written the lease.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	e := election{lease: "operator", duration: 15 * time.Second}
	leases := []proxy.RequestRecord{
		leaseWrite("process-1", "a", "10", 0), leaseWrite("process-1", "a", "12", 2), leaseWrite("process-2", "b", "20", 20),
	}
	refused := write("process-1", "delete", "configmaps", "", 30)
	refused.Code = 409
	for name, test := range map[string]struct {
		requests []proxy.RequestRecord
		isLate   bool
	}{
		"in its term":                      {[]proxy.RequestRecord{write("process-1", "patch", "configmaps", "19", 19)}, false},
		"answered late":                    {[]proxy.RequestRecord{write("process-1", "patch", "configmaps", "19", 20)}, false},
		"after the next leader":            {[]proxy.RequestRecord{write("process-1", "patch", "configmaps", "21", 20)}, true},
		"without a change":                 {[]proxy.RequestRecord{write("process-1", "patch", "configmaps", "11", 30)}, true},
		"a deletion after the next leader": {[]proxy.RequestRecord{write("process-1", "delete", "configmaps", "", 30)}, true},
		"a deletion with the next leader":  {[]proxy.RequestRecord{write("process-1", "delete", "configmaps", "", 20)}, false},
		"refused":                          {[]proxy.RequestRecord{refused}, false},
		"an Event":                         {[]proxy.RequestRecord{write("process-1", "create", "events", "30", 30)}, false},
		"of the present leader":            {[]proxy.RequestRecord{write("process-2", "patch", "configmaps", "30", 30)}, false},
		"of a standby":                     {[]proxy.RequestRecord{write("process-3", "patch", "configmaps", "30", 30)}, false},
		"of a standby that leads later":    {[]proxy.RequestRecord{write("process-2", "patch", "configmaps", "15", 15)}, false},
		"after the lease was released": {[]proxy.RequestRecord{
			leaseWrite("process-2", "", "25", 25), write("process-2", "patch", "configmaps", "26", 26),
		}, false},
		"after it leads again": {[]proxy.RequestRecord{
			leaseWrite("process-1", "a", "40", 40), write("process-1", "patch", "configmaps", "41", 41), write("process-2", "patch", "configmaps", "42", 42),
		}, true},
	} {
		late, step := e.lateWrites(append(leases[:len(leases):len(leases)], test.requests...))
		if (len(late) > 0) != test.isLate {
			t.Errorf("a write %s: %v", name, late)
		}
		if test.isLate && step != 1 {
			t.Errorf("a write %s is in step %d", name, step)
		}
	}
}

// A program elects a leader if it has written a Lease with a holder.
func TestElectionOf(t *testing.T) {
	t.Parallel()
	other := leaseWrite("process-1", "a", "3", 3)
	other.Point.Name, other.LeaseDuration = "other", time.Minute
	e, isElecting := electionOf([]proxy.RequestRecord{
		write("process-1", "patch", "configmaps", "1", 1), leaseWrite("process-1", "a", "2", 2), other,
	})
	if !isElecting || e.lease != "operator" || e.duration != 15*time.Second {
		t.Errorf("the election is %+v, %t", e, isElecting)
	}
	if _, isElecting := electionOf([]proxy.RequestRecord{write("process-1", "patch", "configmaps", "1", 1)}); isElecting {
		t.Error("a program without a Lease elects")
	}
}

// A leader may give up its lease when another one has it, or when it could not renew the lease for long.
func TestHasLost(t *testing.T) {
	t.Parallel()
	e := election{lease: "operator", duration: 15 * time.Second}
	fresh := leaseWrite("process-1", "a", "10", 0)
	fresh.Began = time.Now()
	stale := fresh
	stale.Began = time.Now().Add(-e.duration)
	next := leaseWrite("process-2", "b", "20", 20)
	next.Began = time.Now()
	for name, test := range map[string]struct {
		session  string
		requests []proxy.RequestRecord
		want     bool
	}{
		"that has never led":            {"process-2", []proxy.RequestRecord{fresh}, false},
		"that leads":                    {"process-1", []proxy.RequestRecord{fresh}, false},
		"that cannot renew":             {"process-1", []proxy.RequestRecord{stale}, true},
		"that another one has replaced": {"process-1", []proxy.RequestRecord{fresh, next}, true},
	} {
		if got := e.hasLost(test.session, test.requests); got != test.want {
			t.Errorf("a replica %s has lost the lease: %t", name, got)
		}
	}
}
