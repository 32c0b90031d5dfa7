package operator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
)

// needsOf returns the needs of all parts together, or everything that is wrong with the parts.
func needsOf(parts []Part) (kube.Needs, error) {
	var all kube.Needs
	var each []kube.Needs
	var errs []error
	for i, part := range parts {
		if part == nil {
			errs = append(errs, fmt.Errorf("the part %d of the program is nil", i+1))
			continue
		}
		needs, err := part.Needs()
		errs = append(errs, err)
		errs = append(errs, checkUnique("two controllers of the program are named %q: give one another controller.Name",
			all.Controllers, needs.Controllers))
		errs = append(errs,
			checkUnique("two parts of the program apply as the field manager %q: give one another controller.FieldManager",
				all.FieldManagers, needs.FieldManagers))
		for _, other := range each {
			errs = append(errs, cmp.Or(checkFinalizers(other, needs), checkFinalizers(needs, other)))
		}
		each = append(each, needs)
		all.Controllers = append(all.Controllers, needs.Controllers...)
		all.FieldManagers = append(all.FieldManagers, needs.FieldManagers...)
		all.Defines = append(all.Defines, needs.Defines...)
		all.Reconciles = append(all.Reconciles, needs.Reconciles...)
		all.OwnerLabels = append(all.OwnerLabels, needs.OwnerLabels...)
		all.Access = append(all.Access, needs.Access...)
		all.Rules = append(all.Rules, needs.Rules...)
		all.Finalizers = append(all.Finalizers, needs.Finalizers...)
		all.ShutdownTime = max(all.ShutdownTime, needs.ShutdownTime)
	}
	if len(parts) == 0 {
		errs = append(errs,
			errors.New("the program has no parts: give operator.Main, or the field Parts of operator.Program, at least one"))
	}
	return all, errors.Join(errs...)
}

// checkUnique returns an error if one of names is taken.
func checkUnique(format string, taken, names []string) error {
	for _, name := range names {
		if slices.Contains(taken, name) {
			return fmt.Errorf(format, name)
		}
	}
	return nil
}

// checkFinalizers returns an error if a part removes a finalizer that another part adds to objects of the same
// resource.
func checkFinalizers(adding, removing kube.Needs) error {
	for _, name := range adding.AddedFinalizers {
		for _, r := range adding.Reconciles {
			if slices.Contains(removing.Finalizers, name) && slices.Contains(removing.Reconciles, r) {
				return fmt.Errorf("two controllers of %s remove the finalizer %q: whichever is done first would remove it before the cleanup of the other: give one another finalizer",
					r.GroupResource(), name)
			}
		}
	}
	return nil
}

// ownDefinitions returns the types in needs whose CustomResourceDefinition does not belong to
// another project.
//
//go:noinline
func ownDefinitions(needs kube.Needs) []kube.Type {
	var own []kube.Type
	for _, t := range needs.Defines {
		if !t.Definition.Foreign {
			own = append(own, t)
		}
	}
	return own
}

// ownGroups returns the groups of the kinds that a program defines.
func ownGroups(needs kube.Needs) (groups []string) {
	for _, t := range ownDefinitions(needs) {
		if !slices.Contains(groups, t.Resource.Group) {
			groups = append(groups, t.Resource.Group)
		}
	}
	return groups
}
