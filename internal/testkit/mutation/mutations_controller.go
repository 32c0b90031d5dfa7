package main

// controllerMutations returns the mutations of package controller and of the packages below it.
func controllerMutations() []mutation {
	return []mutation{
		{34, 8, "controller/internal/noop", "handler.check", `_known && _UID == _LiveUID && _Content == _NewContent`, `_known && _UID == _LiveUID`},
		{35, 8, "controller/internal/noop", "handler.Do", `_h.forget(_k)`, ``},
		{36, 8, "controller/internal/noop", "ownsMembers", `_found == len(_wanted)`, `_found <= len(_wanted)`},
		{37, 8, "controller/internal/noop", "ownsExactly", `reflect.DeepEqual(_wanted, _live) && _X`, `true || _X`},
		{39, 8, "controller/internal/noop", "liveObject.state", `delete(_fields, "status")`, ``},

		{49, 11, "controller/internal/queue", "Queue.Done", `_w, _echo, _maybe := _Next, _Echo, _Maybe`, `_w, _echo, _maybe := noWish(), _Echo, _Maybe`},
		{50, 11, "controller", "engine.run", `_e.waitSynced(_ctx) && _X`, `_X`},
		{51, 11, "controller", "engine.waitSynced",
			`select { case <-_Mapper.barrier(): return true; case <-_ctx.Done(): return false }`,
			`_Mapper.barrier(); select { default: return true; case <-_ctx.Done(): return false }`},
		{52, 11, "controller", "ownerRelation.relatedKeys", `!_to._resource._clusterScoped`, `true`},

		{53, 12, "controller/internal/queue", "wish.merge", `_o._due < _w._due`, `_o._due < _w._due && _w._due == never`},
		{54, 12, "controller/internal/queue", "Queue.Add", `(_Echo == IsEcho || _w._low)`, `_Echo == IsEcho`},
		{55, 12, "controller", "outcomeOf", `_X && !ident.IsNewer(_version, _Before), _version == _replaced`, `_version == _replaced`},
		{56, 12, "controller", "echoes.classifyLocked", `_by._key == _flight._object`, `true`},
		{57, 12, "controller", "engine.isAccepted", `_change._missed || _X`, `_X`},
		{58, 12, "controller", "uncertainWrite.canExplain", `!_v._endsLife && !_v._changesSpec`, `!_v._changesSpec`},

		{59, 13, "controller", "changesOf", `_c._priority = queue.Low`, `_c._priority = queue.High`},
		{60, 13, "controller/internal/queue", "Queue.pick", `_X && _Overtaken >= lowShare-1`, `false`},
		{61, 13, "controller/internal/queue", "Queue.setDue", `_q.setReady(_e, Due, _since)`, `_q.setReady(_e, High, _since)`},
		{62, 13, "controller", "mapRelation.isSlow", `true`, `false`},

		{63, 14, "controller", "ownerRelation.relatedKeys", `_X || _owner.Group != _Resource.Group`, `_X`},
		{64, 14, "controller", "engine.canBe", `string(_UID) == _Wanted`, `_UID != ""`},
		{65, 14, "controller", "checkOwners", `_X && _r._namespace == _owner._namespace`, `_X`},

		{66, 15, "controller", "engine.mapTask", `_failed = true`, `_failed = false`},
		{67, 15, "controller", "engine.worker", `_running.Go(_Replacement)`, ``},
		{68, 15, "controller", "runningCalls.takeLong", `_d < _c._reportAfter`, `_d < 100*_c._reportAfter`},
		{69, 15, "controller", "engine.mapChanges", `_running.Go(_Replacement)`, ``},

		{70, 16, "controller", "engine.errorDetails", `!IsTerminal(_Err) && isConflict(_Err)`, `false`},
		{71, 16, "controller", "engine.errorDetails", `_lasted < _f._conflictReportAfter`, `_lasted >= 0`},

		{73, 17, "controller", "engine.reconcileItem", `_err != nil || !_cleanup._isDone`, `_err != nil`},
		{74, 17, "controller", "engine.isAccepted", `(endsLife(_change) || _EndsPause)`, `_EndsPause`},
		{75, 17, "controller", "engine.removeFinalizer", `_f == _e._finalizer`, `true`},
		{76, 17, "controller", "engine.reconcileItem", `_found == selected && _obj.GetDeletionTimestamp() == nil && _e.isPaused(_obj)`, `_found == selected && _e.isPaused(_obj)`},

		{77, 18, "controller", "engine.end", `time.After(_e._grace)`, `time.After(100 * _e._grace)`},
		{78, 18, "controller", "engine.run", `context.WithoutCancel(_ctx)`, `_ctx`},

		{85, 20, "controller", "requestTrace.Do", `_t._reads++`, ``},
		{86, 20, "controller", "engine.reconcileItem", `Causes: _Causes.String(), Waited: _Waited`, `Waited: _Waited`},
		{87, 20, "controller", "engine.finish", `_result._error, _result._duration = _err, time.Since(_Started)`, `_result._error = _err`},
		{88, 20, "controller", "requestTrace.Do", `_w._skipped, _w._failed = _Skipped, _err != nil`, `_w._failed = _err != nil`},

		{93, 22, "controller", "adoption.judge",
			`case _controls: return _Decision, fmt.Errorf(_Format, _Ref, _owner, ErrForeignChild, _Kind, _Name)`,
			`case _controls && false: return _Decision, fmt.Errorf(_Format, _Ref, _owner, ErrForeignChild, _Kind, _Name)`},
		{94, 22, "controller", "adoption.judge", `_named || _r._adopt || _a.hasWritten(_r, _object, false)`, `true`},
		{95, 22, "controller", "decision.send", `_guarded._body, _err = withMetadata(_Body, _member, _value)`, `_, _err = withMetadata(_Body, _member, _value)`},
		{96, 22, "controller", "isEarlierOwner", `_X && _o.Name == _owner.Name`, `_X`},
	}
}
