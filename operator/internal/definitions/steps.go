package definitions

import (
	"fmt"
	"slices"
)

// StepProblems returns what is wrong with an apply of the definition after, when the cluster has the definition before
// with these stored versions. A new version of a kind replaces an old one in these steps, each by an apply of its own:
//
//	    v1                v2
//	A   served, stored
//	B   served, stored    served
//	C   served            served, stored
//	D   not served        served, stored
//	E                     served, stored
//
// An apply goes one row down, or one row up. From B to A, from C to D, and from D to E, the objects must be ready. Then
// migrate is the command that makes them ready. An example: an apply from A to C has the problem that objects would be
// stored in v2 before each program can read v2.
func StepProblems(before, after Spec, storedVersions []string, migrate string) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	from, to := before.storageVersion(), after.storageVersion()
	if from != nil && to != nil && from.Name != to.Name {
		if old := before.findVersion(to.Name); old == nil || !old.Served {
			add("objects would be stored in %s, which the cluster does not serve yet: first apply a release that serves %s and has Storage in the Definition of %s, and wait until all replicas are new", to.Name, to.Name, from.Name)
		}
		if next := after.findVersion(from.Name); next != nil && !next.Served {
			add("objects are stored in %s, which would not be served any more: first apply a release that serves %s and stores objects in %s, and run %s", from.Name, from.Name, to.Name, migrate)
		}
	}
	for _, old := range before.Versions {
		next, isStored := after.findVersion(old.Name), slices.Contains(storedVersions, old.Name)
		switch {
		case next == nil && isStored:
			add("objects may be stored in version %s, which the program does not define any more: keep the version, with NotServed in its Definition, and run %s", old.Name, migrate)
		case next == nil && old.Served:
			add("version %s is served, and the program does not define it any more: keep the version, with NotServed in its Definition, and run %s. For a rollback to a release without %s, run %s --remove-version %s of the release that defines it",
				old.Name, migrate, old.Name, migrate, old.Name)
		case next != nil && old.Served && !next.Served && isStored && to != nil && from != nil && to.Name == from.Name:
			add("version %s would not be served any more, and objects may be stored in it: run %s first", old.Name, migrate)
		}
	}
	return problems
}

// findVersion returns the version of that name, or nil.
func (d Spec) findVersion(name string) *Version {
	for i := range d.Versions {
		if d.Versions[i].Name == name {
			return &d.Versions[i]
		}
	}
	return nil
}

// storageVersion returns the version in which objects are stored, or nil.
func (d Spec) storageVersion() *Version {
	for i := range d.Versions {
		if d.Versions[i].Storage {
			return &d.Versions[i]
		}
	}
	return nil
}
