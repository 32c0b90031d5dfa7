package operator

import (
	"context"
	"sync"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/retention"
)

// retentionRun runs the keeper of the permissions of a program: see package retention.
type retentionRun struct {
	stop    context.CancelFunc
	running sync.WaitGroup
}

// startRetention runs a keeper from the election of this replica on. elected is nil without an election. The keeper
// goes on after the end of ctx, because the parts remove finalizers until they have ended.
func startRetention(ctx context.Context, keeper *retention.Keeper, elected <-chan struct{}) *retentionRun {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &retentionRun{stop: stop}
	r.running.Go(func() {
		if elected != nil {
			select {
			case <-elected:
			case <-ctx.Done():
				return
			}
		}
		keeper.Run(ctx)
	})
	return r
}

// end ends the keeper. The parts of the program have ended.
func (r *retentionRun) end() {
	r.stop()
	r.running.Wait()
}

// retainedNamespaces returns the namespaces whose Roles a program retains: see [retention.Namespaces].
func retainedNamespaces(parts []Part, watched []string, own string) []string {
	var all []kube.Needs
	for _, part := range parts {
		if needs, err := part.Needs(); err == nil { // needsOf reports the error
			all = append(all, needs)
		}
	}
	return retention.Namespaces(all, watched, own)
}

// retentionRules returns the permissions that the retention of Roles needs in an installation of this name and
// namespace.
func retentionRules(parts []Part, watched []string, name, namespace string) []kube.PolicyRule {
	return retention.Rules(manifests.Installation{Name: name, Namespace: namespace},
		retainedNamespaces(parts, watched, namespace))
}
