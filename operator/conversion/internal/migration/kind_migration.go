package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// reportPeriod is the time between two reports of the progress.
	reportPeriod = 10 * time.Second
	// maxAttempts is how often a write of an object that somebody else changes all the time is tried.
	maxAttempts = 10
	// maxNamed is how many objects a message names.
	maxNamed = 20
)

// kindMigration migrates the objects of one kind.
type kindMigration struct {
	client  *kube.Client
	options *Options
	kind    Kind
	// definition is the definition as it was before the first object was listed.
	definition *liveDefinition
	pacer      *pacer
	// failures are texts about objects that could not be written, or must not be.
	failures []string
}

// run migrates the objects of the kind.
func (m *kindMigration) run(ctx context.Context) error {
	d := m.definition
	isRemoved := d.indexOf(m.options.RemovedVersion) >= 0
	if isRemoved && d.isServed(m.options.RemovedVersion) {
		if err := m.stopServing(ctx); err != nil {
			return err
		}
		d = m.definition
	}
	m.report("objects are stored in %s, and the definition names the stored versions %v",
		d.storageVersion(), d.Status.StoredVersions)
	if len(d.Status.StoredVersions) > 1 || isRemoved {
		if err := clock.SleepReal(ctx, m.options.SettleTime); err != nil {
			return err
		}
	}
	objects, err := m.list(ctx)
	if err != nil {
		return fmt.Errorf("list the objects: %w", err)
	}
	if m.options.DryRun {
		m.reportDryRun(objects, isRemoved)
		return m.failuresError()
	}
	if err := m.rewrite(ctx, objects); err != nil {
		return errors.Join(err, m.failuresError())
	}
	if len(m.failures) > 0 {
		return fmt.Errorf("status.storedVersions stays %v, because objects may be stored in another version than %s: %w",
			d.Status.StoredVersions, d.storageVersion(), m.failuresError())
	}
	hasPruned, err := d.pruneStoredVersions(ctx, m.client, m.kind.Resource)
	if err != nil {
		return fmt.Errorf("set status.storedVersions: %w", err)
	}
	if hasPruned {
		m.report("status.storedVersions is now [%s]", d.storageVersion())
	}
	if err := m.moveManagers(ctx, objects); err != nil {
		return errors.Join(err, m.failuresError())
	}
	if len(m.failures) == 0 {
		err = m.removeAnnotations(ctx, objects)
	}
	if err = errors.Join(err, m.failuresError()); err != nil {
		return err
	}
	if !isRemoved {
		return m.giveUpConversion(ctx)
	}
	_, err = changeVersions(ctx, m.client, m.kind.Resource,
		func(versions []any) []any { return withoutVersion(versions, m.options.RemovedVersion) })
	if err == nil {
		m.report("the definition has no version %s any more", m.options.RemovedVersion)
	}
	return err
}

// report prints a line about the kind.
func (m *kindMigration) report(format string, args ...any) {
	fmt.Fprintf(m.options.Out, "%s: %s\n", m.definition.Metadata.Name, fmt.Sprintf(format, args...))
}

// failuresError returns an error with what could not be done for objects, or nil.
func (m *kindMigration) failuresError() error {
	if len(m.failures) == 0 {
		return nil
	}
	named := m.failures[:min(len(m.failures), maxNamed)]
	text := fmt.Sprintf("%d objects are left:\n  %s", len(m.failures), strings.Join(named, "\n  "))
	if more := len(m.failures) - len(named); more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return errors.New(text)
}

// stopServing ends the service of the version that the user wants to remove. Until then, every write in that version
// adds an entry of that version to managedFields.
func (m *kindMigration) stopServing(ctx context.Context) error {
	removed := m.options.RemovedVersion
	if m.options.DryRun {
		m.report("would stop to serve %s", removed)
		return nil
	}
	d, err := changeVersions(ctx, m.client, m.kind.Resource,
		func(versions []any) []any { return setNotServed(versions, removed) })
	if err != nil {
		return err
	}
	m.definition = d
	m.report("%s is not served any more", removed)
	return nil
}

// list returns the objects of the kind, without their content.
func (m *kindMigration) list(ctx context.Context) ([]*object, error) {
	for {
		objects, err := m.listOnce(ctx)
		if e, ok := kube.AsError(err); ok && e.Code == http.StatusGone { // the list has become too old before its last page
			continue
		}
		return objects, err
	}
}

// listOnce returns the objects of one list.
func (m *kindMigration) listOnce(ctx context.Context) (objects []*object, err error) {
	stream := wire.Stream{Resource: m.definition.resource(), Representation: wire.MetadataOnly}
	for page, err := range stream.Pages(ctx, m.client) {
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			x := new(object)
			if err := kube.Unmarshal(item, x); err != nil {
				return nil, err
			}
			objects = append(objects, x)
		}
	}
	return objects, nil
}

// reportDryRun reports what the command would do.
func (m *kindMigration) reportDryRun(objects []*object, isRemoved bool) {
	managers, annotations := 0, 0
	for _, x := range objects {
		if x.isIncomplete() {
			m.recordIncomplete(x)
			continue
		}
		if x.hasUnservedManagers(m.definition) {
			managers++
		}
		if len(x.unservedAnnotations(m.definition)) > 0 {
			annotations++
		}
	}
	m.report("would write %d objects, move managedFields of %d of them, and remove annotations of %d of them",
		len(objects)-len(m.failures), managers, annotations)
	if isRemoved {
		m.report("would remove %s from the definition, and move managedFields out of it", m.options.RemovedVersion)
	}
}

// recordIncomplete adds an incomplete object, which the command does not write, to the failures.
func (m *kindMigration) recordIncomplete(x *object) {
	m.failures = append(m.failures, fmt.Sprintf("%s has the annotation %s=%s: a write would lose what version %s of the object lacks. Mend the object in its own version",
		x.name(m.kind.Resource), ident.IncompleteAnnotation, x.Metadata.Annotations[ident.IncompleteAnnotation],
		m.definition.resource().Version))
}

// rewrite writes each object once, so that the server stores it in the storage version.
func (m *kindMigration) rewrite(ctx context.Context, objects []*object) error {
	written, gone := 0, 0
	reportedAt := time.Now()
	for i, x := range objects {
		if time.Since(reportedAt) > reportPeriod {
			m.report("%d of %d objects are written", i, len(objects))
			reportedAt = time.Now()
		}
		if x.isIncomplete() {
			m.recordIncomplete(x)
			continue
		}
		exists, err := m.writeUntilStored(ctx, x, m.apply)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%d of %d objects were written: %w", written, len(objects), context.Cause(ctx))
		case kube.IsForbidden(err):
			return fmt.Errorf("you may not write the objects, so %d of %d were written: %w", written, len(objects), err)
		case kube.IsUnreachable(err):
			return fmt.Errorf("the server does not answer, so %d of %d objects were written: run the command again: %w",
				written, len(objects), err)
		case err != nil:
			m.failures = append(m.failures, fmt.Sprintf("%s: %v", x.name(m.kind.Resource), err))
		case !exists:
			gone++
		default:
			written++
		}
	}
	m.report("%d of %d objects were written, so that they are stored in %s; %d were gone, and %d are left",
		written, len(objects), m.definition.storageVersion(), gone, len(m.failures))
	return nil
}

// writeUntilStored writes an object, and repeats the write from a new read if somebody else has changed the object. It
// reports whether the object still exists. It leaves the newest metadata in x.
func (m *kindMigration) writeUntilStored(
	ctx context.Context, x *object, write func(context.Context, *object) error,
) (exists bool, err error) {
	uid := x.Metadata.UID
	for range maxAttempts {
		if err = m.pacer.wait(ctx); err != nil {
			return true, err
		}
		err = write(ctx, x)
		if err == nil || !kube.IsConflict(err) && !kube.IsNotFound(err) {
			return true, err
		}
		response, readErr := m.client.Do(ctx, &wire.Request{
			Verb: wire.VerbGet, Resource: m.definition.resource(), Namespace: x.Metadata.Namespace, Name: x.Metadata.Name,
			Representation: wire.MetadataOnly,
		})
		if kube.IsNotFound(readErr) && !kube.IsNoResource(readErr) {
			return false, nil
		}
		now := new(object)
		if readErr == nil {
			readErr = kube.Unmarshal(response.Body, now)
		}
		if readErr != nil {
			return true, readErr
		}
		if now.Metadata.UID != uid { // another object, which was made and stored after the list
			return false, nil
		}
		*x = *now
	}
	return true, fmt.Errorf("somebody has changed the object before each of %d writes: %w", maxAttempts, err)
}

// apply writes an object by a server-side apply that changes nothing. The apply goes through the status where there is
// one, because validators have no rule for it.
func (m *kindMigration) apply(ctx context.Context, x *object) error {
	r := m.definition.resource()
	body, err := kube.Marshal(map[string]any{
		"apiVersion": r.GroupVersion().String(), "kind": r.Kind,
		"metadata": map[string]any{
			"name": x.Metadata.Name, "uid": x.Metadata.UID, "resourceVersion": x.Metadata.ResourceVersion,
		},
	})
	if err != nil {
		return err
	}
	return m.send(ctx, x, &wire.Request{Subresource: m.subresource(), ContentType: wire.ContentApply, Body: body})
}

// subresource returns the subresource through which objects are stored anew.
func (m *kindMigration) subresource() string {
	if m.definition.hasStatus(m.definition.resource().Version) {
		return "status"
	}
	return ""
}

// patchMetadata changes the metadata of an object by a merge patch.
func (m *kindMigration) patchMetadata(ctx context.Context, x *object, subresource string, change map[string]any) error {
	change["uid"], change["resourceVersion"] = x.Metadata.UID, x.Metadata.ResourceVersion
	body, err := kube.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return err
	}
	return m.send(ctx, x, &wire.Request{Subresource: subresource, ContentType: wire.ContentMergePatch, Body: body})
}

// send sends a patch of an object, and leaves the metadata of the answer in x. An object that has changed since x was
// read is a conflict.
func (m *kindMigration) send(ctx context.Context, x *object, r *wire.Request) error {
	r.Verb, r.Resource, r.Namespace, r.Name = wire.VerbPatch, m.definition.resource(), x.Metadata.Namespace,
		x.Metadata.Name
	r.Query, r.Representation = managerQuery(), wire.MetadataOnly
	r.Preconditions = wire.Preconditions{UID: x.Metadata.UID, ResourceVersion: x.Metadata.ResourceVersion}
	response, err := m.client.Do(ctx, r)
	if err != nil {
		return err
	}
	now := new(object)
	if err := kube.Unmarshal(response.Body, now); err != nil {
		return err
	}
	*x = *now
	return nil
}

// managerQuery returns the parameters of a write that name the field manager.
func managerQuery() url.Values { return url.Values{"fieldManager": {FieldManager}} }

// giveUpConversion removes what the program owns of spec.conversion, if nothing needs a conversion any more.
func (m *kindMigration) giveUpConversion(ctx context.Context) error {
	if m.kind.GiveUpConversion == nil {
		return nil
	}
	hadConversion, err := m.kind.GiveUpConversion(ctx)
	if err != nil {
		return fmt.Errorf("give up spec.conversion: %w", err)
	}
	if hadConversion {
		m.report("no object needs a conversion any more, so the program does not own spec.conversion any more")
	}
	return nil
}

// moveManagers moves the entries of managedFields out of versions that are not served.
func (m *kindMigration) moveManagers(ctx context.Context, objects []*object) error {
	moved := 0
	for _, x := range objects {
		if !x.hasUnservedManagers(m.definition) {
			continue
		}
		exists, err := m.writeUntilStored(ctx, x, m.moveManagersOf)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("managedFields of %d objects were moved: %w", moved, context.Cause(ctx))
		case err != nil:
			m.failures = append(m.failures, fmt.Sprintf("%s: move managedFields out of versions that are not served: %v",
				x.name(m.kind.Resource), err))
		case exists:
			moved++
		}
	}
	if moved > 0 {
		m.report("managedFields of %d objects have no version any more that is not served", moved)
	}
	return nil
}

// moveManagersOf moves the entries of managedFields of one object.
func (m *kindMigration) moveManagersOf(ctx context.Context, x *object) error {
	r := m.definition.resource()
	response, err := m.client.Do(ctx,
		&wire.Request{Verb: wire.VerbGet, Resource: r, Namespace: x.Metadata.Namespace, Name: x.Metadata.Name})
	if err != nil {
		return err
	}
	now := new(object)
	if err := kube.Unmarshal(response.Body, now); err != nil {
		return err
	}
	if now.Metadata.UID != x.Metadata.UID {
		return nil // an object that was made after the list has no fields in a version that is not served
	}
	*x = *now
	if !x.hasUnservedManagers(m.definition) {
		return nil
	}
	c := managedFieldsConversion{
		definition: m.definition, converter: m.kind.Converter, version: m.definition.preferredVersion(),
		object: response.Body,
	}
	entries, err := c.convert(x.Metadata.ManagedFields)
	if err != nil {
		return err
	}
	// A write of a subresource cannot change managedFields.
	if err := m.patchMetadata(ctx, x, "", map[string]any{"managedFields": entries}); err != nil {
		return err
	}
	if x.hasUnservedManagers(m.definition) {
		return errors.New("the server has ignored the managedFields of the request")
	}
	return nil
}

// removeAnnotations removes the annotations that keep values of versions that are not served. Nobody can read these
// values any more, unless the version is served again.
func (m *kindMigration) removeAnnotations(ctx context.Context, objects []*object) error {
	var holders []string
	var found []*object
	for _, x := range objects {
		keys := x.unservedAnnotations(m.definition)
		if len(keys) == 0 {
			continue
		}
		found = append(found, x)
		if slices.ContainsFunc(keys, func(key string) bool { return holdsValues(x.Metadata.Annotations[key]) }) {
			holders = append(holders, fmt.Sprintf("%s: %s", x.name(m.kind.Resource), strings.Join(keys, ", ")))
		}
	}
	if len(holders) > 0 {
		named := holders[:min(len(holders), maxNamed)]
		m.report("%d objects have annotations with values that no served version can express. Their removal loses these values for good, also for a rollback. The first objects are:\n  %s", len(holders), strings.Join(named, "\n  "))
		if err := m.options.Confirm(ctx); err != nil {
			return fmt.Errorf("the annotations of %d objects stay: %w", len(found), err)
		}
	}
	removed := 0
	for _, x := range found {
		exists, err := m.writeUntilStored(ctx, x, func(ctx context.Context, x *object) error {
			gone := make(map[string]any)
			for _, key := range x.unservedAnnotations(m.definition) {
				gone[key] = nil
			}
			return m.patchMetadata(ctx, x, "", map[string]any{"annotations": gone})
		})
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("the annotations of %d objects were removed: %w", removed, context.Cause(ctx))
		case err != nil:
			m.failures = append(m.failures, fmt.Sprintf("%s: remove the annotations of versions that are not served: %v",
				x.name(m.kind.Resource), err))
		case exists:
			removed++
		}
	}
	if removed > 0 {
		m.report("the annotations of versions that are not served are removed from %d objects", removed)
	}
	return nil
}
