package crdpublishing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

const (
	minRetry = time.Second
	// maxRetry is below the 10 s within which the conversion must be right again.
	maxRetry = 5 * time.Second
	// maxWrites is how often the conversion is written within writeWindow. Another program may undo each write at once.
	maxWrites   = 10
	writeWindow = 5 * time.Second
)

// keeper keeps the conversion of one CustomResourceDefinition. It is used by one goroutine.
type keeper struct {
	config Config
	*definition
	// needsRead is true if the CustomResourceDefinition may have changed unseen.
	needsRead bool
	// watchError is the error of the watch since the last attempt, if the watch has shown nothing yet.
	watchError error
	// writesSince is the begin of the present writeWindow, and writes is the number of writes in it.
	writesSince time.Time
	writes      int
	// failures is the number of attempts in a row that have failed, and problem is why the last one has failed.
	failures int
	problem  string
}

func newKeeper(c Config, d *definition) *keeper { return &keeper{config: c, definition: d} }

// run keeps the conversion until ctx ends.
func (k *keeper) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	records := make(chan func()) // each records what the watch has shown
	watching.Go(func() {
		k.watch(ctx, func(o *object, err error) {
			select {
			case records <- func() { k.recordWatch(o, err) }:
			case <-ctx.Done():
			}
		})
	})
	for {
		changed := k.config.Changed()
		err := k.watchError
		if err == nil {
			err = k.correct(ctx)
		}
		k.watchError = nil
		var due <-chan time.Time
		if ctx.Err() == nil {
			due = k.recordAttempt(err)
		}
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
		if k.needsRead {
			if err := k.read(ctx); err != nil {
				return err
			}
			k.needsRead = false
		}
		live := k.live.Load()
		if live == nil || !live.exists() {
			return nil // the watch reads first
		}
		if live.isOfAnother(k.config.Target) && !live.isHandedTo(k.config.Target) {
			s := live.service()
			exists, err := k.hasNamespace(ctx, s.Namespace)
			if err != nil {
				return fmt.Errorf("the %s has the conversion of the Service %s/%s: find out whether its Namespace exists: %w", k, s.Namespace, s.Name, err)
			}
			if exists {
				return fmt.Errorf("the %s has the conversion of the Service %s/%s, which is another installation: this program does not convert its objects while the Namespace %s exists",
					k, s.Namespace, s.Name, s.Namespace)
			}
		}
		if !k.needsConversion(live) && !live.isManagedBy(k.client.FieldManager()) {
			return nil // the command migrate has given the conversion up
		}
		bundle := k.config.BundleFor(live.bundle())
		if len(bundle) == 0 {
			return nil // Changed says when there is a bundle
		}
		wanted := newConversion(k.config, k.name, bundle)
		if live.Spec.Conversion.equal(wanted) {
			return nil
		}
		if err := k.write(ctx, wanted, "published the conversion of a kind"); err != nil {
			return err
		}
	}
}

// write applies a conversion, and logs a message. If the CustomResourceDefinition has changed, it is read again next.
func (k *keeper) write(ctx context.Context, wanted *conversion, message string) error {
	if k.recordWrite(time.Now()) > maxWrites {
		return fmt.Errorf("spec.conversion of the %s is changed again and again by somebody else: see its managedFields", k)
	}
	switch err := k.apply(ctx, wanted); {
	case err == nil:
		k.config.Log.Info(message, "definition", k.name)
	case kube.IsConflict(err) || kube.IsUIDConflict(err) || kube.IsNotFound(err):
		k.needsRead = true
	default:
		return err
	}
	return nil
}

// recordWatch records what the watch has shown.
func (k *keeper) recordWatch(o *object, err error) {
	live := k.live.Load()
	switch {
	case err != nil:
		k.needsRead = live != nil
		k.watchError = err
	case live != nil && ident.IsNewer(live.Metadata.ResourceVersion, o.Metadata.ResourceVersion):
		k.needsRead = true // the watch lags behind, or the server was restored from a backup
	default:
		k.setLive(o)
		k.needsRead = false
	}
}

// recordWrite records a write. It returns the number of writes in the present writeWindow.
func (k *keeper) recordWrite(now time.Time) int {
	if now.Sub(k.writesSince) >= writeWindow {
		k.writesSince, k.writes = now, 0
	}
	k.writes++
	return k.writes
}

// recordAttempt records how an attempt has ended, and returns a channel that fires when the next attempt is due, or nil. It
// logs a problem once in a row, and the end of a problem.
func (k *keeper) recordAttempt(err error) <-chan time.Time {
	log := k.config.Log.With("definition", k.name)
	if err == nil {
		if k.problem != "" {
			log.Info("the conversion of a kind can be published again")
		}
		k.failures, k.problem = 0, ""
		return nil
	}
	if text := err.Error(); text != k.problem {
		log.Error("cannot publish the conversion of a kind; will try again", "error", err)
		k.problem = text
	}
	wait := min(minRetry<<min(k.failures, 10), maxRetry)
	k.failures++
	return time.After(wait/2 + rand.N(wait/2)) // replicas do not act at the same moment
}
