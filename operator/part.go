package operator

import (
	"context"
	"fmt"
	"reflect"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Part is something that a program runs: a [controller.Controller], a [Func], or a
// [Service]. A part that needs names (see [kube.Needs]) counts as started, for the
// readiness of the program, when it has given its queue to the Observer of rt.
type Part interface {
	// Needs is what the part needs, or what is wrong with it. It is asked before anything
	// is started and any request is made.
	Needs() (kube.Needs, error)
	// Start runs the part until it is done, or ctx ends. An error ends the whole program;
	// that ctx ended is none.
	Start(ctx context.Context, rt *controller.Runtime) error
}

// Func is a part that is a plain function, of a program that defines T.
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
