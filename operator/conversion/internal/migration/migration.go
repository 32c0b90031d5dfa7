// Package migration rewrites the stored objects of the kinds that a program defines, so that a version of a kind can
// go.
//
// An API server stores an object in the version that is the storage version at the time of a write. When the storage
// version changes from v1 to v2, the objects stay as they are until somebody writes them. As long as one object is
// stored in v1, v1 must stay in the CustomResourceDefinition. For each kind, the command works in this order:
//
//  1. It reads the definition in the cluster, and refuses what would not be safe.
//  2. It writes each object once, by a server-side apply that changes nothing. The API server then stores the object in
//     the storage version.
//  3. It sets status.storedVersions of the definition to the storage version, if the definition is still the one that
//     step 1 has read.
//  4. It moves the entries of managedFields out of versions that are not served. When such a version leaves the
//     definition, an apply to an object with such an entry fails. See https://github.com/kubernetes/kubernetes/issues/111937.
//  5. It removes the annotations that keep values of versions that are not served.
//  6. It gives up spec.conversion of the definition if nothing needs a conversion any more. Until then each write of an
//     object with managedFields of a version that is not served needs one.
//
// With --remove-version the command stops serving that version after step 1. After step 5 it removes the version from
// the definition, and leaves step 6 to a later call of the command.
//
// An object that cannot be written stays as it is, and the command reports the object at its end. Another call of the
// command starts from the beginning. An object that is already stored in the storage version costs a request then, and
// the API server does not store the object again.
package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// FieldManager is the field manager of the writes of this package. It owns no field of any object.
const FieldManager = "yare-migrate"

// DefaultRate is how many objects the command writes in a second, unless the user gives another rate.
const DefaultRate = 50

// Kind is a kind that the program defines.
type Kind struct {
	// Resource is the resource of the kind in any version.
	Resource wire.Resource
	// StorageVersion is the version in which the definition of the program stores objects.
	StorageVersion string
	// Converter is nil for a kind whose versions have equal fields.
	Converter *FieldConverter
	// GiveUpConversion removes what the program owns of spec.conversion of the definition, unless objects may have to be
	// converted for users. It reports whether there was something to remove. It is nil for a kind without a converter.
	GiveUpConversion func(context.Context) (bool, error)
}

// Options describe a migration.
type Options struct {
	Kinds []Kind
	// Rate is how many objects are written in a second. It is above zero.
	Rate int
	// RemovedVersion is a version that the user wants to take out of the definitions, or empty.
	RemovedVersion string
	// SettleTime is how long the command waits before it lists the objects of a kind that are not all stored in the
	// storage version. Until then, each API server has seen the definition.
	SettleTime time.Duration
	// DryRun changes nothing.
	DryRun bool
	// Confirm returns an error unless the user agrees to what Out has got before.
	Confirm func(context.Context) error
	// Out gets a line for each step.
	Out io.Writer
}

// errNothingWritten is the error of a command that has changed nothing.
var errNothingWritten = errors.New("nothing was written")

// Run migrates all kinds. It looks at all kinds before it changes anything. The error contains what is left, and why.
func Run(ctx context.Context, client *kube.Client, o *Options) error {
	p := &pacer{interval: time.Second / time.Duration(o.Rate)}
	var migrations []*kindMigration
	var errs []error
	hasRemovedVersion := false
	for _, kind := range o.Kinds {
		d, err := findDefinition(ctx, client, kind.Resource)
		if err == nil {
			err = d.check(kind, o)
		}
		if err == nil {
			err = checkNativeMigrations(ctx, client, kind.Resource)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		hasRemovedVersion = hasRemovedVersion || d.indexOf(o.RemovedVersion) >= 0
		migrations = append(migrations, &kindMigration{client: client, options: o, kind: kind, definition: d, pacer: p})
	}
	if o.RemovedVersion != "" && !hasRemovedVersion && len(errs) == 0 {
		errs = append(errs, fmt.Errorf(
			"no definition in the cluster has the version %s: name another one with --remove-version", o.RemovedVersion))
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", errNothingWritten, errors.Join(errs...))
	}
	for _, m := range migrations {
		if err := m.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.definition.Metadata.Name, err))
		}
		if ctx.Err() != nil {
			errs = append(errs, errors.New("the command was stopped before its end: run it again"))
			break
		}
	}
	return errors.Join(errs...)
}

// nativeMigrationVersions are the versions of StorageVersionMigration that API servers of Kubernetes have, the newest
// first.
const nativeMigrationVersions = "v1 v1beta1 v1alpha1"

// checkNativeMigrations returns an error if a StorageVersionMigration of the kind has not ended.
func checkNativeMigrations(ctx context.Context, client *kube.Client, migrated wire.Resource) error {
	r := wire.Resource{Plural: "storageversionmigrations", ClusterScoped: true}
	r.Group, r.Kind = "storagemigration.k8s.io", "StorageVersionMigration"
	for version := range strings.FieldsSeq(nativeMigrationVersions) {
		r.Version = version
		response, err := client.Do(ctx, &wire.Request{Verb: wire.VerbList, Resource: r})
		if kube.IsNoResource(err) {
			continue
		}
		var list struct {
			Items []nativeMigration `json:"items"`
		}
		if err == nil {
			err = kube.Unmarshal(response.Body, &list)
		}
		if err != nil {
			return fmt.Errorf("find out whether a StorageVersionMigration runs: %w", err)
		}
		for _, m := range list.Items {
			if m.Spec.Resource.Group == migrated.Group && m.Spec.Resource.Resource == migrated.Plural && !m.hasEnded() {
				return fmt.Errorf("the StorageVersionMigration %s of %s has not ended: wait for its end, or delete it",
					m.Metadata.Name, migrated.GroupResource())
			}
		}
		return nil
	}
	return nil
}

// nativeMigration is a StorageVersionMigration of storagemigration.k8s.io.
type nativeMigration struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Resource struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// hasEnded reports whether the migration has succeeded or failed.
func (m *nativeMigration) hasEnded() bool {
	for _, c := range m.Status.Conditions {
		if (c.Type == "Succeeded" || c.Type == "Failed") && c.Status == "True" {
			return true
		}
	}
	return false
}

// pacer limits the rate of writes. One goroutine uses it.
type pacer struct {
	// interval is the time between two writes.
	interval time.Duration
	// next is when the next write may begin.
	next time.Time
}

// wait returns when the next write may begin.
func (p *pacer) wait(ctx context.Context) error {
	now := time.Now()
	delay := max(0, p.next.Sub(now))
	p.next = now.Add(delay + p.interval)
	return clock.SleepReal(ctx, delay)
}
