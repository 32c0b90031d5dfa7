package profiles_test

import (
	"context"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/profiles"
	"github.com/yare-go/yare/operator/secure"
)

// A program serves its profiles when it is called with --listen-secure and --pprof.
func ExampleNew() {
	work := operator.Task("work", func(ctx context.Context, _ *controller.Runtime) error { <-ctx.Done(); return nil })
	operator.Main(work, secure.New(), profiles.New())
}
