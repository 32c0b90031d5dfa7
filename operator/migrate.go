package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/migration"
)

// migrateFlags are the flags of the command migrate.
type migrateFlags struct {
	// rate is zero for migration.DefaultRate.
	rate int
	// removedVersion is the version to remove from the definitions, or empty.
	removedVersion string
}

// settleTime is how long the command waits for API servers to see a definition that somebody has just applied. A user
// waits meanwhile. So it is shorter than schemaDelay, for which nobody waits.
const settleTime = 5 * time.Second

// migrator runs the command migrate.
type migrator struct {
	// program is the name of the program, and parts are its parts.
	program string
	parts   []Part
	client  *kube.Client
	// server names the server of the client for the user.
	server string
	// in is where the user answers. It is nil without an input.
	in  *os.File
	out io.Writer
}

// migrate stores all objects of the kinds that the program defines in their storage version. It returns an error if the
// program has no converter.
func (m migrator) migrate(ctx context.Context, o options, needs kube.Needs) error {
	code, err := conversionCodeIn(m.parts)
	if err != nil {
		return err
	}
	return code.migrate(ctx, m, o, needs)
}

// run does the work of migrate, in a program with a converter. Only [programConversionCode] calls run, so that a
// program without a converter does not have the code.
func (m migrator) run(ctx context.Context, o options, needs kube.Needs) error {
	kinds, err := migratedKinds(needs)
	if err != nil {
		return err
	}
	conversions, _, err := conversionsOf(m.parts)
	if err != nil {
		return err
	}
	for i := range kinds {
		definition := kinds[i].Resource.GroupResource().String()
		kinds[i].Converter = conversions.fieldConverter(kinds[i].Resource.GroupKind())
		kinds[i].GiveUpConversion = func(ctx context.Context) (bool, error) {
			return conversions.giveUp(ctx, m.client.WithFieldManager(m.program), definition)
		}
	}
	if len(kinds) == 0 {
		return errors.New("the program defines no kind, so it has no objects to migrate")
	}
	fmt.Fprintf(m.out, "migrates the objects of %s in the cluster %s\n", m.program, m.server)
	return migration.Run(ctx, m.client, &migration.Options{
		Kinds: kinds, Rate: cmp.Or(o.migrate.rate, migration.DefaultRate), RemovedVersion: o.migrate.removedVersion,
		SettleTime: settleTime, DryRun: o.isDryRun,
		Confirm: prompt{in: m.in, out: m.out, isConfirmed: o.isConfirmed, timeout: defaultTimeout}.confirm, Out: m.out,
	})
}

// migratedKinds returns the kinds that the program defines.
func migratedKinds(needs kube.Needs) (kinds []migration.Kind, err error) {
	definitions, err := crd.From(ownDefinitions(needs)...)
	for _, d := range definitions {
		r := wire.Resource{Plural: d.Spec.Names.Plural, ClusterScoped: d.Spec.Scope == "Cluster"}
		r.Group, r.Kind = d.Spec.Group, d.Spec.Names.Kind
		for _, v := range d.Spec.Versions {
			if v.Storage {
				r.Version = v.Name
			}
		}
		kinds = append(kinds, migration.Kind{Resource: r, StorageVersion: r.Version})
	}
	return kinds, err
}
