package mutation

// controllerMutations returns the mutations of package controller and of the packages below it.
func controllerMutations() []mutation {
	return []mutation{
		{34, 8, "controller/internal/noop", "handler.check", `_known && _UID == _LiveUID && _Content == _NewContent`, `_known && _UID == _LiveUID`},
		{35, 8, "controller/internal/noop", "handler.Do", `_h.forgetKey(_k)`, ``},
		{36, 8, "controller/internal/noop", "ownsMembers", `_found == len(_wanted)`, `_found <= len(_wanted)`},
		{37, 8, "controller/internal/noop", "ownsExactly", `reflect.DeepEqual(_wanted, _live) && _X`, `true || _X`},
		{39, 8, "controller/internal/noop", "knownObject.stateDigest", `case isStatus && !isOfStatus && !a.hasStatus, !isStatus && isOfStatus:`, `case !isStatus && isOfStatus:`},

		{49, 11, "controller/internal/queue", "Queue.Done", `_s, _echo, _possible := _Schedule, _Echo, _Possible`, `_s, _echo, _possible := noSchedule(), _Echo, _Possible`},
		{50, 11, "controller", "engine.run", `_e.waitSynced(_ctx) && _X`, `_X`},
		{51, 11, "controller", "engine.waitSynced",
			`select { case <-_MapQueue.Barrier(): return true; case <-_ctx.Done(): return false }`,
			`_MapQueue.Barrier(); select { default: return true; case <-_ctx.Done(): return false }`},
		{52, 11, "controller/internal/relation", "Owner.Keys", `!_to._resource._clusterScoped`, `true`},

		{53, 12, "controller/internal/queue", "schedule.merge", `_o._due < _w._due`, `_o._due < _w._due && _w._due == never`},
		{54, 12, "controller/internal/queue", "Queue.Add", `(_Echo == CertainEcho || _w._low)`, `_Echo == CertainEcho`},
		{55, 12, "controller/internal/echo", "newWriteResult", `_X && !ident.IsNewer(_version, _Before), _version == _replaced`, `_version == _replaced`},
		{56, 12, "controller/internal/echo", "Tracker.classifyLocked", `_by._key != _id._key`, `false`},
		{57, 12, "controller", "dispatcher.isAccepted", `_change._missed || _X`, `_X`},
		{58, 12, "controller/internal/echo", "uncertainWrite.canExplain", `!_v._isDeletionStep && !_v._changesSpec`, `!_v._changesSpec`},

		{59, 13, "controller", "newBatch", `_b._priority = queue.Low`, `_b._priority = queue.High`},
		{60, 13, "controller/internal/queue", "readyKeys.pick", `_X && _Overtaken >= lowShare-1`, `false`},
		{61, 13, "controller/internal/queue", "Queue.setDue", `_q.setReady(_e, Due, _since)`, `_q.setReady(_e, High, _since)`},
		{62, 13, "controller/internal/relation", "Map.IsSlow", `true`, `false`},

		{63, 14, "controller/internal/relation", "Owner.Keys", `_X || _owner.Group != _Resource.Group`, `_X`},
		{64, 14, "controller", "dispatcher.mayHaveUID", `_UID == _Wanted`, `_UID != ""`},
		{65, 14, "controller/internal/adoption", "checkOwnerReferences", `_X && _r._namespace == _owner._namespace`, `_X`},

		{66, 15, "controller", "mapper.mapTask", `_failed = true`, `_failed = false`},
		{67, 15, "controller", "reconciler.run", `_running.Go(_Replacement)`, ``},
		{68, 15, "controller", "longReconciles.takeLong", `_d < _c._reportAfter`, `_d < 100*_c._reportAfter`},
		{69, 15, "controller", "mapper.run", `_running.Go(_Replacement)`, ``},

		{70, 16, "controller", "throttleError", `!IsTerminal(_Err) && isConflict(_Err)`, `false`},
		{71, 16, "controller", "throttleError", `_lasted < _f._conflictReportAfter`, `_lasted >= 0`},

		{73, 17, "controller", "reconciler.cleanUp", `_err != nil || !_cleanup._isDone`, `_err != nil`},
		{74, 17, "controller", "dispatcher.isAccepted", `(isDeletionStep(_change) || _EndsPause)`, `_EndsPause`},
		{75, 17, "controller", "finalizers.isHandled", `_Named || _f.isRetired(_name)`, `true`},
		{76, 17, "controller", "reconciler.reconcile", `!_rec.result.Cleanup && _Pause.isOn(_obj)`, `_Pause.isOn(_obj)`},

		{77, 18, "controller", "engine.end", `time.After(_e._configuration._grace)`, `time.After(100 * _e._configuration._grace)`},
		{78, 18, "controller", "engine.run", `context.WithoutCancel(_ctx)`, `_ctx`},

		{85, 20, "controller", "requestRecorder.Do", `_t._reads++`, ``},
		{86, 20, "controller", "reconciler.reconcile", `Causes: _Causes.String(), Waited: _Waited`, `Waited: _Waited`},
		{87, 20, "controller", "reconciler.end", `_result._error, _result._duration = _err, time.Since(_Started)`, `_result._error = _err`},
		{88, 20, "controller", "requestRecorder.Do", `_w._skipped, _w._failed = _Skipped, _err != nil`, `_w._failed = _err != nil`},

		{93, 22, "controller/internal/adoption", "Guard.decideByMetadata",
			`case _controls: return _Decision, fmt.Errorf(_Format, _Ref, _owner, kube.ErrForeignChild, _Kind, _Name)`,
			`case _controls && false: return _Decision, fmt.Errorf(_Format, _Ref, _owner, kube.ErrForeignChild, _Kind, _Name)`},
		{94, 22, "controller/internal/adoption", "Guard.decideByMetadata", `_named || _r._adopt || _g.hasWritten(_r, _object)`, `true`},
		{95, 22, "controller/internal/adoption", "decision.send", `_guarded._body, _err = jsonscan.WithMetadata(_Body, _member, _value)`, `_, _err = jsonscan.WithMetadata(_Body, _member, _value)`},
		{96, 22, "controller/internal/adoption", "isEarlierOwner", `_X && _o.Name == _owner.Name`, `_X`},
	}
}
