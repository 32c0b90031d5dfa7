package crdpublishing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// keeper keeps the conversion of one CustomResourceDefinition. It is used by one goroutine.
type keeper struct {
	config Config
	*convertedDefinition
	object followed.Object[object]
	// hasWritten is true once the conversion was written.
	hasWritten bool
}

func newKeeper(c Config, d *convertedDefinition) *keeper {
	return &keeper{config: c, convertedDefinition: d, object: followed.Object[object]{Reference: d.Reference}}
}

// run keeps the conversion until ctx ends.
func (k *keeper) run(ctx context.Context) {
	loop := followed.Keeper{
		Sources: []followed.Source{k.object.Source(k.client)},
		Changed: k.config.Changed,
		Correct: func(ctx context.Context) (bool, time.Duration) {
			return k.object.Attempt(ctx, k.correct, k.logProblem) == nil, 0
		},
		MaxRetry: followed.MaxRetry,
	}
	loop.Run(ctx)
}

// correct writes the conversion until it is right.
func (k *keeper) correct(ctx context.Context) error { return k.object.Correct(ctx, k.client, k.change) }

// change returns how the conversion of the CustomResourceDefinition has to change.
func (k *keeper) change(ctx context.Context, lastKnown *object) (none followed.Change[object], err error) {
	k.show(lastKnown)
	if !lastKnown.exists() {
		return none, nil
	}
	if lastKnown.isOfOtherService(k.config.Target) && !lastKnown.isHandedTo(k.config.Target) {
		s := lastKnown.service()
		exists, err := k.hasNamespace(ctx, s.Namespace)
		if err != nil {
			return none, fmt.Errorf(
				"the %s has the conversion of the Service %s/%s: find out whether its Namespace exists: %w",
				k, s.Namespace, s.Name, err)
		}
		if k.isElsewhere.Store(exists); exists {
			return none, fmt.Errorf("the %s has the conversion of the Service %s/%s, which is %w: "+
				"this program does not convert its objects while the Namespace %s exists",
				k, s.Namespace, s.Name, errOtherInstallation, s.Namespace)
		}
	}
	k.isElsewhere.Store(false)
	if !k.needsConversion(lastKnown) && !lastKnown.isManagedBy(k.client.FieldManager()) {
		return none, nil // the command migrate has given the conversion up
	}
	bundle := k.config.BundleFor(lastKnown.bundle())
	if len(bundle) == 0 {
		return none, nil // Changed says when there is a bundle
	}
	wanted := newConversion(k.config, k.Name, bundle)
	if lastKnown.Spec.Conversion.isEqual(wanted) {
		return none, nil
	}
	return followed.Change[object]{Description: "spec.conversion", Write: func() (followed.State[object], error) {
		state, err := k.apply(ctx, lastKnown, wanted)
		if err == nil {
			k.hasWritten = true
			k.config.Log.Info("published the conversion of a kind", "definition", k.Name)
		}
		return state, err
	}}, nil
}

// errOtherInstallation is the error of a program that leaves a conversion to another installation, as it should.
var errOtherInstallation = errors.New("another installation")

// logProblem logs why the conversion cannot be published, or that it can be published again.
func (k *keeper) logProblem(err error) {
	log := k.config.Log.With("definition", k.Name)
	switch {
	case err == nil:
		log.Info("the conversion of a kind can be published again")
		return
	case errors.Is(err, errOtherInstallation):
		log.Info("another installation converts the objects of a kind", "cause", err)
		return
	}
	log.Error("cannot publish the conversion of a kind; will try again", "error", err)
}
