package controller

import (
	"context"
	"testing"
)

// Without a tracer, a reconcile allocates nothing for a span.
func TestNoSpan(t *testing.T) {
	c := new(reconciler)
	r := new(reconciliation)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if c.startSpan(ctx, r, false) != ctx || r.endSpan != nil {
			t.Error("there is a span")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
