package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// convertedDefinitions returns the CustomResourceDefinitions whose objects the installation converts.
func convertedDefinitions(ctx context.Context, c *cluster, f *findings) (all []*clusterread.Object, err error) {
	for _, r := range f.Kinds {
		d, exists, err := clusterread.Find(ctx, c.client, manifests.DefinitionResource(), "", r.String())
		if kube.IsForbidden(err) {
			continue // removeDefinitions reports it, if the definition has to go
		}
		if err != nil {
			return nil, err
		}
		if s := d.ConversionService(); exists && s.Namespace == f.Namespace && s.Name == f.Name {
			all = append(all, d)
		}
	}
	return all, nil
}

// useStorageVersions replaces the version of each kind by the version in which the objects are stored, if the server
// serves that version. So the objects can be read without a program that converts them.
func useStorageVersions(ctx context.Context, c *cluster, kinds []wire.Resource) error {
	for i, r := range kinds {
		if !strings.Contains(r.Group, ".") {
			continue // the group belongs to Kubernetes, which has no definition of the kind
		}
		d, exists, err := clusterread.Find(ctx, c.client, manifests.DefinitionResource(), "", r.String())
		switch {
		case kube.IsForbidden(err) || err == nil && !exists:
			continue
		case err != nil:
			return err
		}
		for _, v := range d.Spec.Versions {
			if v.Storage && v.Served {
				kinds[i].Version = v.Name
			}
		}
	}
	return nil
}

// checkConversions returns an error if objects are stored in two versions and no program is left that converts them.
func checkConversions(ctx context.Context, c *cluster, f *findings) error {
	if f.deployment.Metadata.UID != "" {
		return nil
	}
	converted, err := convertedDefinitions(ctx, c, f)
	if err != nil {
		return err
	}
	for _, definition := range converted {
		if old := oldStoredVersions(definition); len(old) > 0 {
			return fmt.Errorf("objects of %s may be stored in %v, and no program is left that converts them: install the program once more with %s manifests, and uninstall it when all its replicas are ready",
				definition, old, f.Program)
		}
	}
	return nil
}

// oldStoredVersions returns the versions in which objects may be stored, besides the storage version.
func oldStoredVersions(definition *clusterread.Object) []string {
	return slices.DeleteFunc(slices.Clone(definition.Status.StoredVersions), func(name string) bool {
		return slices.ContainsFunc(definition.Spec.Versions,
			func(v clusterread.Version) bool { return v.Name == name && v.Storage })
	})
}

// handOverConversions makes the objects readable that stay after the end of the program. If another installation
// exists, it converts the objects from now on. Otherwise all objects are stored in the storage version, and only that
// version is served. The program still runs, because the objects of other versions are read through it. Without a
// Deployment all objects are stored in the storage version already: see checkConversions.
func handOverConversions(ctx context.Context, c *cluster, f *findings) error {
	converted, err := convertedDefinitions(ctx, c, f)
	if err != nil || len(converted) == 0 {
		return err
	}
	others, err := otherDeployments(ctx, c, &f.Installation)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		next := others[max(0,
			slices.IndexFunc(others, func(d *clusterread.Object) bool { return d.Status.ReadyReplicas > 0 }))]
		for _, definition := range converted {
			if err := handOver(ctx, c, definition, next); err != nil {
				return err
			}
		}
		return nil
	}
	if f.deployment.Metadata.UID != "" {
		if err := f.Migrate(ctx); err != nil {
			return fmt.Errorf("store the objects that stay in one version: %w", err)
		}
	}
	for _, definition := range converted {
		var patch []kube.PatchOperation
		for i, v := range definition.Spec.Versions {
			if v.Served && !v.Storage {
				patch = append(patch, kube.TestAt(fmt.Sprintf("/spec/versions/%d/name", i), v.Name),
					kube.ReplaceAt(fmt.Sprintf("/spec/versions/%d/served", i), false))
			}
		}
		if len(patch) == 0 {
			continue
		}
		err := c.patchDefinition(ctx, definition,
			fmt.Sprintf("made %s serve its storage version only, because nobody converts its objects any more",
				definition), patch...)
		if err != nil {
			return err
		}
	}
	return nil
}

// handOver makes the program of another installation take the conversion of a definition over, and returns when it has.
// Only that program has its bundle. A Service without its bundle would make each call of a user fail that needs a
// conversion.
func handOver(ctx context.Context, c *cluster, definition, next *clusterread.Object) error {
	successor := next.Metadata.Namespace + "/" + next.Metadata.Name
	line := fmt.Sprintf("gave the conversion of %s to the installation %s", definition, successor)
	if c.isDryRun {
		fmt.Fprintf(c.out, "without --dry-run: %s\n", line)
		return nil
	}
	annotate := func(ctx context.Context, value any) error {
		return c.write(ctx, &wire.Request{Verb: wire.VerbPatch, ContentType: wire.ContentMergePatch}, definition,
			map[string]any{"metadata": map[string]any{
				"uid": definition.Metadata.UID, "annotations": map[string]any{manifests.SuccessorAnnotation: value},
			}})
	}
	if err := annotate(ctx, successor); err != nil {
		return err
	}
	err := waitForConverter(ctx, c, definition, next)
	if err == nil {
		fmt.Fprintln(c.out, line)
	}
	// A program that starts after a failed command must not take the conversion over.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limit)
	defer cancel()
	return errors.Join(err, annotate(ending, nil))
}

// waitForConverter waits until the conversion of a definition belongs to an installation.
func waitForConverter(ctx context.Context, c *cluster, definition, next *clusterread.Object) error {
	for began := time.Now(); ; {
		now, exists, err := clusterread.Find(ctx, c.client, definition.Resource, "", definition.Metadata.Name)
		if err != nil {
			return err
		}
		if s := now.ConversionService(); !exists || s.Namespace == next.Metadata.Namespace && s.Name == next.Metadata.Name {
			return nil
		}
		if time.Since(began) > c.limit {
			return fmt.Errorf("%s has not taken the conversion of %s over after %s: make its program run, in a release that converts these objects, or uninstall it first, and run the command again",
				next, definition, c.limit)
		}
		if err := clock.SleepReal(ctx, lookPeriod); err != nil {
			return fmt.Errorf("wait until %s takes the conversion of %s over: %w", next, definition, err)
		}
	}
}

// removeConversions ends the conversions of the installation, after the end of its program.
func removeConversions(ctx context.Context, c *cluster, f *findings) error {
	converted, err := convertedDefinitions(ctx, c, f)
	if err != nil || c.isDryRun {
		return err
	}
	for _, definition := range converted {
		// The strategy None changes the apiVersion alone, which is right for the one version that is served.
		if err := c.patchDefinition(ctx, definition, fmt.Sprintf("removed the conversion of %s", definition),
			kube.ReplaceAt("/spec/conversion", map[string]string{"strategy": "None"})); err != nil {
			return err
		}
	}
	return nil
}
