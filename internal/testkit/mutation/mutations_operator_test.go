package mutation

// operatorMutations returns the mutations of package operator and of the packages that only it uses.
func operatorMutations() []mutation {
	return []mutation{
		{72, 16, "operator", "requestMetrics.recordRequest", `_Verb.IsWrite() && kube.IsConflict(_err)`, `false`},

		{79, 18, "operator", "untilSignal", `!_first`, `!_first && false`},

		{80, 19, "internal/lease", "term.timeLeftLocked", `_Timing.Deadline`, `_Timing.Duration`},
		{81, 19, "internal/lease", "Elector.renew", `_e._candidate.rememberStored(_stored, _sent)`, `_e._candidate.rememberStored(_stored, _e.clock())`},
		{82, 19, "internal/lease", "candidate.untilFree", `_HeldUntil - _now._steady`, `_HeldUntil - _now.running`},
		{83, 19, "internal/lease", "Fence.sendWrite", `_limited._query = withTimeout(_Query, _left)`, ``},
		{84, 19, "internal/lease", "term.release", `!_t._hasDoubt || _X`, `true`},

		{89, 21, "internal/access", "Checker.allows", `_Namespace == _Own && slices.ContainsFunc(_Grants, _isAllowed)`, `slices.ContainsFunc(_Grants, _isAllowed)`},
		{90, 21, "internal/access", "ruleAllows", `(len(_Names) == 0 || slices.Contains(_Names, objectName(_r)))`, `true`},
		{91, 21, "operator/internal/problems", "RefuseUndeclared", `len(_missing) == 0`, `len(_missing) < 2`},
		{92, 21, "internal/access", "For", `len(_namespaces) == 0 && !_a._ownNamespace`, `len(_namespaces) == 0`},

		{97, 23, "operator/internal/uninstall", "findings.checkObjects", `case !_o._deleteObjects:`, `case false:`},
		{98, 23, "operator/internal/uninstall", "deleteObjects", `_o._abandonCleanup && _x.HasFinalizer(_Finalizers)`, `_x.HasFinalizer(_Finalizers)`},
		{99, 23, "operator/internal/uninstall", "removeDefinitions", `case len(_others) > 0:`, `case false:`},
		{100, 23, "operator/internal/uninstall", "showNamespace", `fmt.Fprintf(_c._out, _Format, _namespace._Metadata._name)`, `_ = _c.remove(ctx, _namespace)`},
	}
}
