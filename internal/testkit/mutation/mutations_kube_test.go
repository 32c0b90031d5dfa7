package mutation

// kubeMutations returns the mutations of package kube.
func kubeMutations() []mutation {
	return []mutation{
		{4, 1, "kube", "HasReason", `reason == got || reason == metav1.StatusReasonGone`, `reason == got`},

		{21, 5, "kube/wire", "Error.RetryDelay", `min(_Delay, maxRetryDelay)`, `_Delay`},

		{25, 6, "kube", "progressReader.Read", `_r._timeout.restart()`, `_ = _r._timeout`},
		{26, 6, "kube", "transport.Do", `!_timeout._timer.Stop()`, `false`},

		{40, 9, "kube", "shouldRetry", `_X || isRepeatable(_r)`, `true || _X || isRepeatable(_r)`},
		{41, 9, "kube", "isRepeatable", `_r.Preconditions.UID != ""`, `true`},
		{42, 9, "kube", "earlierSuccess.answer", `IsNotFound(_e) || IsUIDConflict(_e)`, `IsUIDConflict(_e)`},
		{43, 9, "kube", "limitWrites", `!_Verb.IsWrite()`, `true || !_Verb.IsWrite()`},

		{44, 10, "kube", "pruner.applyBody", `_name != "status" || _withStatus`, `true`},
		{45, 10, "kube", "pruner.appendMember", `string(_v) == "null" || _X`, `_X`},
		{46, 10, "kube", "pruneRuleTable.addMembersLocked", `f.Type.Kind() == reflect.Struct && !_isRequired`, `f.Type.Kind() == reflect.Struct`},
		{47, 10, "kube", "statusApply.mayRepeat", `_X || _Live != _Object.GetGeneration()`, `_X`},
		{48, 10, "kube", "applier.request", `len(_obj.GetManagedFields()) > 0`, `false`},
	}
}
