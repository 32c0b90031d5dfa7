package yaretest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// observed records the failures of a test.
type observed struct {
	testing.TB
	failures []string
}

func (o *observed) Errorf(format string, args ...any) {
	o.failures = append(o.failures, fmt.Sprintf(format, args...))
}

// A program that reconciles only by its own request is at rest. A program that goes on
// for other reasons is not at rest.
func TestRequireIdle(t *testing.T) {
	t.Parallel()
	const call = `{"level":"DEBUG","msg":"reconciled","cause":%q,"took":0.001}`
	for cause, resting := range map[string]bool{"requeue": true, "Deployment default/web modified": false} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			proxy := yaretest.Shared(t).Proxy(t)
			// Slow enough to seem to be at rest in between.
			script := fmt.Sprintf("while :; do echo '"+call+"' >&2; sleep 2; done", cause)
			program := yaretest.Run(t, proxy.Kubeconfig(), "/bin/sh", "-c", script)
			program.WaitForLog(t, cause)
			o := &observed{TB: t}
			proxy.RequireIdle(o, 4*time.Second, program)
			if said := strings.Join(o.failures, "\n"); (said == "") != resting || !resting && !strings.Contains(said, cause) {
				t.Errorf("it says:\n%s", said)
			}
		})
	}
}
