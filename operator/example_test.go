package operator_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// A task is a function beside the controllers of a program. With leader election, only the leader runs it. It reads
// through the cache of the program, and declares what it needs.
func ExampleTask() {
	report := operator.Task("report", func(ctx context.Context, rt *controller.Runtime) error {
		namespaces, err := kube.List[corev1.Namespace](ctx, rt.CachedClient(), "")
		if err != nil {
			return err
		}
		fmt.Println("namespaces:", len(namespaces))
		return errors.New("that is all") // an error ends the program, and nil ends the task alone
	}, controller.Reads[corev1.Namespace](wire.VerbList))

	client := fakeserver.New().Client() // an API server in memory; operator.Main(report) is a whole program
	fmt.Println(operator.Run(context.Background(), client, report))
	// Output:
	// namespaces: 0
	// the task report: that is all
}
