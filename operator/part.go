package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Part is something that a program runs: a [controller.Controller], a [Watcher], a [Task],
// an events.Recorder, or a part of an author's own. [kube.Needs] sets on which replicas the part runs, and
// whether other parts use it. [OnEveryReplica] changes the replicas of any part.
//
// The program is ready when all of its parts have started. A part with Controllers in its [kube.Needs] has started when
// it has called the method Subscribed of the Observer of its Runtime for each of them. Any other part has started when
// the streams that it follows with package watch have been listed.
type Part interface {
	// Needs returns what the part needs, or an error if the part is not valid. It is called before
	// any part is started and any request is sent, and must return the same each time.
	Needs() (kube.Needs, error)
	// Start runs the part until it is done or ctx ends. An error ends the whole program. The end
	// of ctx is no error.
	Start(ctx context.Context, rt *controller.Runtime) error
}

// Watcher returns a part that runs a function. Its program defines T. The function may list and watch T
// and, if T has a status, get T and patch the status. Everything else is declared by permissions:
//
//	operator.Watcher[Book](run, controller.Writes[corev1.ConfigMap](wire.VerbCreate))
func Watcher[T any, P kube.DefinedObjectOf[T]](
	run func(ctx context.Context, c *kube.Client) error, permissions ...controller.Permission,
) Part {
	t, err := kube.TypeOf[T, P]()
	if err == nil && run == nil {
		err = fmt.Errorf("the function for %s is nil", ident.GoTypeName(reflect.TypeFor[T]()))
	}
	needs := kube.Needs{Defines: []kube.Type{t}}
	read := kube.Access{Resource: t.Resource, Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch}}
	if err == nil && t.HasStatus() && !t.Definition.Foreign {
		read.Verbs = append(read.Verbs, wire.VerbGet)
		needs.Access = append(needs.Access,
			kube.Access{Resource: t.Resource, Subresource: "status", Verbs: []wire.Verb{wire.VerbPatch}})
	}
	needs.Access = append(needs.Access, read)
	err = errors.Join(err, addPermissions(&needs, permissions))
	return functionPart{
		needs: needs, err: err, start: func(ctx context.Context, rt *controller.Runtime) error { return run(ctx, rt.Client) },
	}
}

// addPermissions adds permissions to needs, and returns what is wrong with them.
func addPermissions(needs *kube.Needs, permissions []controller.Permission) error {
	var errs []error
	for _, p := range permissions {
		declared, err := p.Needs()
		errs = append(errs, err)
		needs.Access = append(needs.Access, declared.Access...)
		needs.Rules = append(needs.Rules, declared.Rules...)
	}
	return errors.Join(errs...)
}

// functionPart is a part that runs a function.
type functionPart struct {
	needs kube.Needs
	err   error
	start func(context.Context, *controller.Runtime) error
}

func (f functionPart) Needs() (kube.Needs, error) { return f.needs, f.err }

func (f functionPart) Start(ctx context.Context, rt *controller.Runtime) error {
	return f.start(ctx, rt)
}

// OnEveryReplica returns a part that runs part on every replica from the start on, whether the replica leads
// or not. One example is a [Task] that serves requests. Another example is a controller that only fills its
// own cache. All replicas write what the part writes. A part with
// EveryReplica in its [kube.Needs] starts on every replica too, and waits for [controller.Runtime.WaitElected] before
// it does what one replica alone may do.
func OnEveryReplica(part Part) Part {
	if part == nil {
		return nil // the program reports it
	}
	return everyReplica{part}
}

type everyReplica struct{ Part }

// Needs returns the needs of the part, which runs on every replica.
func (e everyReplica) Needs() (kube.Needs, error) {
	needs, err := e.Part.Needs()
	needs.EveryReplica = true
	return needs, err
}

// Unwrap returns the part, so that the program finds what it is.
func (e everyReplica) Unwrap() Part { return e.Part }

// Start starts the part as in a program without leader election.
func (e everyReplica) Start(ctx context.Context, rt *controller.Runtime) error {
	own := *rt
	own.Elected = nil
	return e.Part.Start(ctx, &own)
}
