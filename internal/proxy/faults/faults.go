package faults

import "slices"

// Faults are the faults of one run: see [Fault] and [Kind]. A property of a [Family] holds for a run if one fault of
// the run belongs to such a family: see [Description].
type Faults []Fault

// hasFamily reports whether a property holds for the family of one of the faults.
func (all Faults) hasFamily(holds func(Description) bool) bool {
	return slices.ContainsFunc(all, func(f Fault) bool { return holds(FamilyOf(f.Kind).Describe()) })
}

// HasKind reports whether one of the faults has one of the kinds.
func (all Faults) HasKind(kinds ...Kind) bool {
	return slices.ContainsFunc(all, func(f Fault) bool { return slices.Contains(kinds, f.Kind) })
}

// AreJudgedByRules reports whether rules alone judge the run: see [Description.IsJudgedByRules].
func (all Faults) AreJudgedByRules() bool {
	return all.hasFamily(func(d Description) bool { return d.IsJudgedByRules })
}

// HasServerInterruption reports whether the API server is interrupted in the run: see [Description.InterruptsServer].
func (all Faults) HasServerInterruption() bool {
	return all.hasFamily(func(d Description) bool { return d.InterruptsServer })
}

// NeedsOwnControlPlane reports whether the run needs the control plane for itself: see
// [Description.NeedsOwnControlPlane].
func (all Faults) NeedsOwnControlPlane() bool {
	return all.hasFamily(func(d Description) bool { return d.NeedsOwnControlPlane })
}

// NeedsStandby reports whether the run needs a replica that stands by: see [Description.NeedsStandby].
func (all Faults) NeedsStandby() bool {
	return all.hasFamily(func(d Description) bool { return d.NeedsStandby })
}

// HasDenial reports whether a write is denied again and again in the run: see [Description.DeniesWrites].
func (all Faults) HasDenial() bool {
	return all.hasFamily(func(d Description) bool { return d.DeniesWrites })
}

// HasFaultBeyond reports whether a fault happens in a step, and ends only with the next step: see
// [Description.OutlastsStep].
func (all Faults) HasFaultBeyond(step int) bool {
	return slices.ContainsFunc(all, func(f Fault) bool {
		return f.StepIndex() == step && FamilyOf(f.Kind).Describe().OutlastsStep
	})
}
