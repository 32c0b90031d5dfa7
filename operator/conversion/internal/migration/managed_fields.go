package migration

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
)

// managedFieldsConversion converts the managedFields of one object into another version.
//
// An example. A kind has the fields hour and minute in v1, and the field schedule in v2. The manager "a" has applied
// the hour 3 in v1 and owns {"f:spec": {"f:hour": {}}}. The part of the object that "a" owns is {spec: {hour: 3}}. In
// v2 this part is {spec: {schedule: "* 3"}}. So "a" owns {"f:spec": {"f:schedule": {}}} in v2, although the schedule of
// the whole object, "30 3", also has the minute of another manager.
type managedFieldsConversion struct {
	definition *liveDefinition
	// converter is nil if all versions have equal fields. Then a field set is valid in each version.
	converter *FieldConverter
	// version is the version to which the entries are converted.
	version string
	// object is the object as JSON, in a served version.
	object []byte
}

// convert returns entries of managedFields in which no entry has a version that is not served. Two entries of one
// manager that then have the same version become one.
func (c *managedFieldsConversion) convert(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var converted []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if isUnserved(e, c.definition) {
			var err error
			if e, err = c.convertEntry(e); err != nil {
				return nil, fmt.Errorf("convert the fields of the manager %s: %w", e.Manager, err)
			}
			if e.FieldsV1 == nil {
				continue
			}
		}
		i := slices.IndexFunc(converted, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == e.Manager && other.Operation == e.Operation && other.Subresource == e.Subresource &&
				other.APIVersion == e.APIVersion
		})
		if i < 0 {
			converted = append(converted, e)
			continue
		}
		if err := mergeEntry(&converted[i], e); err != nil {
			return nil, fmt.Errorf("merge two entries of the manager %s: %w", e.Manager, err)
		}
	}
	return converted, nil
}

// mergeEntry adds the fields of an entry to another entry, which gets the later time.
func mergeEntry(into *metav1.ManagedFieldsEntry, e metav1.ManagedFieldsEntry) error {
	a, err := fieldset.Decode(into.FieldsV1)
	if err != nil {
		return err
	}
	b, err := fieldset.Decode(e.FieldsV1)
	if err != nil {
		return err
	}
	if into.Time == nil || e.Time != nil && into.Time.Before(e.Time) {
		into.Time = e.Time
	}
	a.Add(b)
	into.FieldsV1, err = a.Encode()
	return err
}

// convertEntry returns an entry in the new version. The entry has no FieldsV1 if the manager owns nothing in this
// version.
func (c *managedFieldsConversion) convertEntry(e metav1.ManagedFieldsEntry) (metav1.ManagedFieldsEntry, error) {
	gv, err := apischema.ParseGroupVersion(e.APIVersion)
	if err != nil {
		return e, err
	}
	old := gv.Version
	e.APIVersion = apischema.GroupVersion{Group: gv.Group, Version: c.version}.String()
	if c.converter == nil {
		return e, nil
	}
	owned, err := fieldset.Decode(e.FieldsV1)
	if err != nil {
		return e, err
	}
	fields, err := c.converter.convertFields(c, owned, old)
	if err != nil {
		return e, err
	}
	if len(fields) == 0 {
		e.FieldsV1 = nil
		return e, nil
	}
	e.FieldsV1, err = fields.Encode()
	return e, err
}
