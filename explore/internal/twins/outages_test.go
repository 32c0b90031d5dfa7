package twins

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// TestOutages explores a program whose API server and etcd are killed and paused.
func TestOutages(t *testing.T) {
	if os.Getenv(modeVariable) != modeAll {
		t.Skipf("each run waits until the control plane is back: set %s=%s", modeVariable, modeAll)
	}
	t.Parallel()
	cluster := yaretest.New(t)
	coverage := explore.Run(t, explore.Binary{Path: "../../../examples/webapp"}, explore.Settings{OwnCluster: cluster, Only: []string{"plane", "restored"}})
	for _, k := range []faults.Kind{faults.ServerKilled, faults.EtcdKilled, faults.EtcdPaused, faults.Restored} {
		if count := coverage.Kinds[string(k)]; count.Total == 0 || count.Done < count.Total {
			t.Errorf("runs with %s: %+v", k, count)
		}
	}
}

// endWithServer returns a candidate that leads at once, and ends the program when the server does not answer.
func endWithServer(rt *controller.Runtime) (candidate, error) {
	return leadAndPing(rt, func(err error) error { return err }), nil
}

// outliveServer returns a candidate that leads at once, and waits until the server answers again.
func outliveServer(rt *controller.Runtime) (candidate, error) {
	return leadAndPing(rt, func(error) error { return nil }), nil
}

// answerTimeout is how long the candidates of this file wait for an answer.
const answerTimeout = 1500 * time.Millisecond

// leadAndPing returns a candidate that leads at once. It returns what failed returns for a request that the server
// does not answer within answerTimeout. The client repeats the request until then.
func leadAndPing(rt *controller.Runtime, failed func(error) error) candidate {
	client := rt.Client.Live()
	request := wire.Request{Verb: wire.VerbGet, Resource: lease.Resource(), Namespace: rt.Client.Namespaces()[0], Name: leaseName}
	return func(ctx context.Context, lead func()) error {
		lead()
		for {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return nil
			}
			r := request
			limited, cancel := context.WithTimeout(ctx, answerTimeout)
			_, err := client.Do(limited, &r)
			cancel()
			if err != nil && !kube.IsNotFound(err) && ctx.Err() == nil {
				if err := failed(err); err != nil {
					return err
				}
			}
		}
	}
}

// TestOutagesAreFound explores an operator that ends with the API server, and its right twin. The finding is
// seen again in a replay, which stops the same component at the same point.
func TestOutagesAreFound(t *testing.T) {
	if os.Getenv(modeVariable) != modeAll {
		t.Skipf("each run waits until the control plane is back: set %s=%s", modeVariable, modeAll)
	}
	t.Parallel()
	control, err := plane.Start(t.Context(), plane.Options{Console: console.ForTests("twins")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	config, _, err := kube.ConfigSource{Kubeconfig: control.Kubeconfig()}.Load()
	if err != nil {
		t.Fatal(err)
	}
	kind, err := kube.TypeOf[Site]()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crd.From(kind)
	if err != nil {
		t.Fatal(err)
	}
	text, err := kube.Marshal(definitions[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Install(t.Context(), config, text); err != nil {
		t.Fatal(err)
	}
	twin := twin{
		name: "ends with the API server", wrong: electing(endWithServer), right: electing(outliveServer),
		steps: []finding.Step{applying("web", SiteSpec{Text: "one"}), applying("web", SiteSpec{Text: "two"})},
		finds: []faults.Kind{faults.ServerKilled}, verdict: finding.Exited,
	}
	options := engine.Settings{Config: config, Components: control, Steps: twin.steps, Seed: 1, Only: twin.kinds()}
	requireSeenAgain(t, twin, options, requireFound(t, twin, options))
	requireNotFound(t, engine.Parts("twin", twin.right), options)
}
