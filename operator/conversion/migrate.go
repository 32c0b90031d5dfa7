package conversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/conversion/internal/crdpublishing"
	"github.com/yare-go/yare/operator/conversion/internal/migration"
)

// migrator is the command migrate with its flags.
type migrator struct {
	*handler
	// rate is zero for migration.DefaultRate.
	rate int
	// removedVersion is the version to remove from the definitions, or empty.
	removedVersion string
}

// flags returns the flags for the command line.
func (m *migrator) flags() []feature.Flag {
	return []feature.Flag{
		{Name: "rate", Set: m.setRate,
			Help: "write at most N objects in a second. Default: " + strconv.Itoa(migration.DefaultRate)},
		{Name: "remove-version", Set: feature.SetLabel(&m.removedVersion, "the name of the version"),
			Help: "remove this version from the definitions too, before a rollback to a release without it"},
	}
}

// setRate sets the rate to a number from 1 to 1000.
func (m *migrator) setRate(text string) (err error) {
	if m.rate, err = strconv.Atoi(text); err != nil || m.rate < 1 || m.rate > 1000 {
		return errors.New("write a number from 1 to 1000")
	}
	return nil
}

// settleTime is how long the command waits for API servers to see a definition that somebody has just applied. A user
// waits meanwhile. So it is shorter than schemaDelay, for which nobody waits.
const settleTime = 5 * time.Second

// command returns the command for the command line.
func (m *migrator) command() feature.Command {
	return feature.Command{
		Name: "migrate", Run: m.run,
		Help: "store all objects in the storage version, so that a version can go. It needs get,\n" +
			"list and patch of the objects with their status, and of the CustomResourceDefinitions",
	}
}

// run stores all objects of the kinds that the program defines in their storage version.
func (m *migrator) run(ctx context.Context, run *feature.CommandRun) error {
	kinds, err := migratedKinds(m.program.Needs)
	if err != nil {
		return err
	}
	for i := range kinds {
		definition := kinds[i].Resource.GroupResource().String()
		kinds[i].Converter = m.fieldConverter(kinds[i].Resource.GroupKind())
		kinds[i].GiveUpConversion = func(ctx context.Context) (bool, error) {
			return m.giveUp(ctx, run.Client.WithFieldManager(m.program.Name), definition)
		}
	}
	fmt.Fprintf(run.Out, "migrates the objects of %s in the cluster %s\n", m.program.Name, run.Server)
	return migration.Run(ctx, run.Client, &migration.Options{
		Kinds: kinds, Rate: cmp.Or(m.rate, migration.DefaultRate), RemovedVersion: m.removedVersion,
		SettleTime: settleTime, DryRun: run.IsDryRun, Confirm: run.Confirm, Out: run.Out,
	})
}

// migratedKinds returns the kinds that the program defines.
func migratedKinds(needs kube.Needs) (kinds []migration.Kind, err error) {
	var own []kube.Type
	for _, t := range needs.Defines {
		if !t.Definition.Foreign {
			own = append(own, t)
		}
	}
	definitions, err := crd.From(own...)
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

// fieldConverter returns the converter of managedFields for a kind, or nil for a kind without conversions.
func (m *migrator) fieldConverter(kind schema.GroupKind) *migration.FieldConverter {
	for _, k := range m.kinds {
		if k.GroupKind() == kind {
			return migration.NewFieldConverter(plainConverter{k})
		}
	}
	return nil
}

// giveUp removes what the program owns of spec.conversion of a CustomResourceDefinition. See [crdpublishing.GiveUp].
func (m *migrator) giveUp(ctx context.Context, client *kube.Client, definition string) (bool, error) {
	if m.paths()[definition] == "" {
		return false, nil
	}
	return crdpublishing.GiveUp(ctx, client.WithFieldManager(conversionManager(client)), definition,
		m.singleVersionDefinitions()[definition])
}

// plainConverter converts objects without the annotations of conversions: nobody who applies an object owns these.
type plainConverter struct{ kind *convert.Kind }

// Convert returns an object in another version, for [migration.Converter].
func (c plainConverter) Convert(object []byte, version string) ([]byte, error) {
	converted, err := c.kind.Convert(object, version)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := kube.Unmarshal(converted.Object, &content); err != nil {
		return nil, err
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			maps.DeleteFunc(annotations, func(key string, _ any) bool { return convert.IsOwnAnnotation(key) })
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	return kube.Marshal(content)
}
