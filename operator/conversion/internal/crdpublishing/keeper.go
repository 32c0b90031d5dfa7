package crdpublishing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// keeper keeps the conversion of one CustomResourceDefinition. It is used by one goroutine.
type keeper struct {
	config Config
	*convertedDefinition
	object followed.Object[object]
	retry  followed.Retry
	// hasWritten is true once the conversion was written.
	hasWritten bool
}

func newKeeper(c Config, d *convertedDefinition) *keeper {
	return &keeper{config: c, convertedDefinition: d, object: followed.Object[object]{Reference: d.Reference}}
}

// run keeps the conversion until ctx ends.
func (k *keeper) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	records := make(chan func()) // each records what the watch has shown
	watching.Go(func() { k.object.Follow(ctx, k.client, records) })
	for {
		changed := k.config.Changed()
		err := k.object.Attempt(func() error { return k.correct(ctx) })
		if ctx.Err() == nil && k.object.RecordProblem(err) {
			k.logProblem(err)
		}
		due := k.retry.Next(err == nil)
		select {
		case record := <-records:
			record()
		case <-changed:
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// correct writes the conversion until it is right.
func (k *keeper) correct(ctx context.Context) error {
	for {
		if err := k.object.RefreshIfNeeded(ctx, k.client); err != nil {
			return err
		}
		lastKnown := k.object.LastKnown
		if lastKnown == nil {
			return nil // the watch reads first
		}
		k.show(lastKnown)
		if !lastKnown.exists() {
			return nil
		}
		if lastKnown.isOfOtherService(k.config.Target) && !lastKnown.isHandedTo(k.config.Target) {
			s := lastKnown.service()
			exists, err := k.hasNamespace(ctx, s.Namespace)
			if err != nil {
				return fmt.Errorf("the %s has the conversion of the Service %s/%s: find out whether its Namespace exists: %w",
					k, s.Namespace, s.Name, err)
			}
			if k.isElsewhere.Store(exists); exists {
				return fmt.Errorf("the %s has the conversion of the Service %s/%s, which is %w: this program does not convert its objects while the Namespace %s exists",
					k, s.Namespace, s.Name, errOtherInstallation, s.Namespace)
			}
		}
		k.isElsewhere.Store(false)
		if !k.needsConversion(lastKnown) && !lastKnown.isManagedBy(k.client.FieldManager()) {
			return nil // the command migrate has given the conversion up
		}
		bundle := k.config.BundleFor(lastKnown.bundle())
		if len(bundle) == 0 {
			return nil // Changed says when there is a bundle
		}
		wanted := newConversion(k.config, k.Name, bundle)
		if lastKnown.Spec.Conversion.isEqual(wanted) {
			return nil
		}
		if err := k.write(ctx, wanted); err != nil {
			return err
		}
	}
}

// write applies a conversion. If the CustomResourceDefinition has changed, it is read again next.
func (k *keeper) write(ctx context.Context, wanted *conversion) error {
	if !k.object.RecordWrite(time.Now()) {
		return fmt.Errorf("spec.conversion of the %s is changed again and again by somebody else: see its managedFields", k)
	}
	switch state, err := k.apply(ctx, k.object.LastKnown, wanted); {
	case err == nil:
		k.object.Record(state)
		k.hasWritten = true
		k.config.Log.Info("published the conversion of a kind", "definition", k.Name)
	case followed.IsOutdated(err):
		k.object.NeedsRead = true
	default:
		return err
	}
	return nil
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
