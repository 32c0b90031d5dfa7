package twins

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

const (
	// leaseName is the name of the Lease of the twins of this file.
	leaseName = "twin"
	// The times of their leases are in proportion to the usual ones, and let a run end soon.
	leaseDuration, leaseDeadline, leasePeriod = 6 * time.Second, 4 * time.Second, 600 * time.Millisecond
)

// candidate takes part in an election. It calls lead when its replica leads, and returns when ctx ends. An
// error ends the program.
type candidate func(ctx context.Context, lead func()) error

// elected is a controller that reconciles when its replica leads.
type elected struct {
	operator.Part
	// candidacy returns the candidate of a replica. It may change the client of the controller.
	candidacy func(rt *controller.Runtime) (candidate, error)
}

// electing returns a function that makes the parts of a program with a leader.
func electing(candidacy func(rt *controller.Runtime) (candidate, error)) func() []operator.Part {
	return func() []operator.Part { return []operator.Part{elected{newController(applyAndRecord), candidacy}} }
}

func (p elected) Needs() (kube.Needs, error) {
	needs, err := p.Part.Needs()
	needs.Access = append(needs.Access, kube.Access{
		Resource: lease.Resource(), Verbs: []wire.Verb{wire.VerbGet, wire.VerbList, wire.VerbWatch, wire.VerbCreate, wire.VerbUpdate},
	})
	return needs, err
}

func (p elected) Start(ctx context.Context, rt *controller.Runtime) error {
	own, leads := *rt, make(chan struct{})
	own.Elected = leads
	run, err := p.candidacy(&own)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var failure error
	running.Go(func() {
		defer cancel()
		failure = run(ctx, func() { close(leads) })
	})
	err = p.Part.Start(ctx, &own)
	cancel()
	running.Wait()
	return errors.Join(failure, err)
}

// leadWithinTerm returns a candidate with the elector of yare. Its fence stops the requests of the controller at
// the deadline of the lease, and the program ends then.
func leadWithinTerm(rt *controller.Runtime) (candidate, error) {
	fence := lease.NewFence(lease.SystemClock(), lease.Timing{Duration: leaseDuration, Deadline: leaseDeadline, Period: leasePeriod})
	rt.Client = rt.Client.With(fence.Handler)
	elector, err := lease.New(lease.Config{
		Client: kube.NewClientFromHandler(fence.Transport()).WithFieldManager(rt.Client.FieldManager()),
		Fence:  fence, Namespace: rt.Client.Namespaces()[0], Name: leaseName, Identity: rand.Text(), Log: rt.Log,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, lead func()) error {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		ended := make(chan struct{})
		defer close(ended)
		waiting.Go(func() {
			select {
			case <-elector.Elected():
				lead()
			case <-ended:
			}
		})
		return elector.Run(ctx)
	}, nil
}

// leadForever returns a candidate that never learns of another leader. The candidate takes a failed renewal for a
// trouble that will pass.
func leadForever(rt *controller.Runtime) (candidate, error) {
	leases := kube.Namespaced[coordinationv1.Lease](rt.Client, rt.Client.Namespaces()[0])
	identity := rand.Text()
	return func(ctx context.Context, lead func()) error {
		for isLeader := false; ; {
			holds, err := takeLease(ctx, leases, identity)
			if err != nil {
				rt.Log.Error("the lease is not renewed", "error", err)
			}
			if holds && !isLeader {
				isLeader = true
				lead()
			}
			select {
			case <-time.After(leasePeriod):
			case <-ctx.Done():
				return nil
			}
		}
	}, nil
}

// takeLease takes or renews the lease, unless another replica has renewed it recently. It reports whether
// this replica holds the lease.
func takeLease(ctx context.Context, leases kube.API[coordinationv1.Lease], identity string) (holds bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseDeadline/2)
	defer cancel()
	seconds, now := int32(leaseDuration/time.Second), metav1.NowMicro()
	claim := coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	live, err := leases.Get(ctx, leaseName)
	if kube.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}, Spec: claim})
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	holder := live.Spec.HolderIdentity
	if holder != nil && *holder != "" && *holder != identity && time.Since(live.Spec.RenewTime.Time) < leaseDuration {
		return false, nil
	}
	live.Spec = claim
	_, err = leases.Replace(ctx, live)
	return err == nil, err
}

// leadership returns an operator whose former leader goes on, and its right twin.
func leadership() twin {
	return twin{
		name: "leads on after its lease", wrong: electing(leadForever), right: electing(leadWithinTerm),
		steps: []finding.Step{
			applying("web", SiteSpec{Text: "one"}), applying("web", SiteSpec{Text: "two"}),
			applying("web", SiteSpec{Text: "three"}), applying("web", SiteSpec{Text: "four"}),
		},
		finds: []faults.Kind{faults.LeaderLost, faults.LeaderHung, faults.LeaderCut, faults.LeaderKilled}, verdict: finding.TwoLeaders,
	}
}

// An exploration finds a former leader that writes, and finds nothing in the elector of yare.
func TestLeadership(t *testing.T) {
	if os.Getenv(modeVariable) != modeAll {
		t.Skipf("each run lasts longer than a lease: set %s=%s", modeVariable, modeAll)
	}
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	twin := leadership()
	options := engine.Settings{Config: cluster.Config(), Steps: twin.steps, Seed: 1, Only: twin.kinds()}
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		requireSeenAgain(t, twin, options, requireFound(t, twin, options))
	})
	t.Run("right", func(t *testing.T) {
		t.Parallel()
		record, err := engine.Explore(t.Context(), engine.Parts("twin", twin.right), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d: %d runs in %s", options.Seed, record.Coverage.Runs, record.Coverage.Took.Round(time.Second))
		for _, found := range record.Findings {
			t.Errorf("%s: %s", found.Verdict, report.Summary(found))
		}
		for _, k := range twin.finds {
			if count := record.Coverage.Kinds[k]; count.Total == 0 || count.Done < count.Total {
				t.Errorf("runs with %s: %+v", k, count)
			}
		}
	})
}

// TestLeadershipOfWebApp explores a program with --leader-elect: its crashes, and the loss of its lease.
func TestLeadershipOfWebApp(t *testing.T) {
	if os.Getenv(modeVariable) != modeAll {
		t.Skipf("each run lasts longer than a lease: set %s=%s", modeVariable, modeAll)
	}
	t.Parallel()
	coverage := explore.Run(t, explore.Binary{Path: "../../../examples/webapp", Args: []string{"--leader-elect", "--lease-duration=15s"}},
		explore.Settings{Only: []string{"leader", "crash"}, Budget: 2 * time.Minute})
	for _, k := range leadership().finds {
		if coverage.Kinds[string(k)].Done == 0 {
			t.Errorf("no run with %s: %+v", k, coverage.Kinds[string(k)])
		}
	}
}
