package operator

import (
	"context"
	"fmt"
	"reflect"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Part is something that a program runs: a [controller.Controller], a [Func], a [Task]
// or a [Service].
//
// For the readiness of the program, a part with names in its [kube.Needs] has started when
// it has given the queue of each name to the Observer of its Runtime. The streams that any
// other part follows with package watch must have been listed, as long as they are followed.
type Part interface {
	// Needs returns what the part needs, or what is wrong with it. It is called before any
	// part is started and any request is sent, and must return the same each time.
	Needs() (kube.Needs, error)
	// Start runs the part until it is done or ctx ends. An error ends the whole program. That
	// ctx has ended is no error.
	Start(ctx context.Context, rt *controller.Runtime) error
}

// Func returns a part that runs a function. Its program defines T.
func Func[T any, P kube.DefinedObjectOf[T]](run func(ctx context.Context, c *kube.Client) error) Part {
	t, err := kube.TypeOf[T, P]()
	if err == nil && run == nil {
		err = fmt.Errorf("the function for %s is nil", kube.TypeName(reflect.TypeFor[T]()))
	}
	return function{
		needs: kube.Needs{
			Defines: []kube.Type{t},
			Access:  []kube.Access{{Resource: t.Resource, Verbs: []kube.Verb{kube.VerbList, kube.VerbWatch}}},
		},
		err: err,
		run: run,
	}
}

type function struct {
	needs kube.Needs
	err   error
	run   func(context.Context, *kube.Client) error
}

func (f function) Needs() (kube.Needs, error) { return f.needs, f.err }

func (f function) Start(ctx context.Context, rt *controller.Runtime) error {
	return f.run(ctx, rt.Client)
}
