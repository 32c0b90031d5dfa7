package mutation

// watchMutations returns the mutations of package watch.
func watchMutations() []mutation {
	return []mutation{
		{1, 1, "internal/follow", "backoff.recordError", `kube.HasReason(_err, metav1.StatusReasonGone)`, `false`},
		{2, 1, "internal/follow", "watcher.handleFrame", `_q._stream.StatusError(_frame._object)`, `watchError(_q._stream, fmt.Errorf("%w: its type is %q", errBadFrame, _frame.Type))`},
		{3, 1, "internal/follow", "maxVersionRefusals", `4`, `1 << 30`},

		{5, 2, "internal/follow", "sequence.advance", `_X || ident.IsNewer(_q._at, _version)`, `_X`},
		{6, 2, "internal/follow", "sequence.bookmark", `_q.advance(_version)`, ``},
		{7, 2, "internal/follow", "objectTracker.remove", `if _isListing {`, `if false && _isListing {`},
		{8, 2, "internal/follow", "watcher.request", `"allowWatchBookmarks", "true"`, `"allowWatchBookmarks", "false"`},
		{9, 2, "internal/follow", "expectedState.isLost", `ident.IsNewer(_Expected, _Served)`, `false`},

		{10, 3, "internal/follow", "objectTracker.takeMissing", `_Listed == _List || _Undecodable[_key]`, `true || _Listed == _List || _Undecodable[_key]`},
		{11, 3, "internal/follow", "objectTracker.put", `!_Old.HasSameUID(_v)`, `false && !_Old.HasSameUID(_v)`},
		{12, 3, "internal/follow", "objectTracker.put", `_Old.Equal(_v)`, `false && _Old.Equal(_v)`},
		{13, 3, "internal/follow", "objectTracker.remove", `_X || !_Old.HasSameUID(_v)`, `_X`},
		{14, 3, "internal/follow", "follower.handleNotFound", `case _checkErr != nil:`, `case _checkErr != nil && ctx.Err() != nil:`},

		{16, 4, "internal/follow", "sequence.putUndecodable", `_q._tracker.putUndecodable(_id)`, `_ = _id`},
		{17, 4, "internal/follow", "objectTracker.putUndecodable", `_t._hasUnnamed = true`, `_t._hasUnnamed = false`},

		{19, 5, "internal/follow", "backoffDelay", `minBackoff << min(_n-1, 10)`, `minBackoff << min(_n-_n, 10)`},
		{20, 5, "internal/follow", "backoffDelay", `_d = max(_d, _e.RetryDelay())`, `_ = _e`},
		{22, 5, "internal/follow", "watcher.openAndRead", `time.Since(_opened) < minWatchDuration`, `time.Since(_opened) < 0`},

		{23, 6, "internal/follow", "watcher.readFrames", `_idle.resume()`, ``},
		{24, 6, "internal/follow", "backoff.recordError", `_r := reaction{_isReported: true}`, `_r := reaction{_isReported: false}`},
	}
}
