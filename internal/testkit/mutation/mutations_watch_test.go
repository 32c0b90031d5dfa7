package mutation

// watchMutations returns the mutations of package watch.
func watchMutations() []mutation {
	return []mutation{
		{1, 1, "watch", "backoff.recordError", `kube.IsGone(_err)`, `false`},
		{2, 1, "watch", "watcher.handleFrame", `_q._stream.StatusError(_frame._object)`, `watchError(_q._stream, fmt.Errorf("%w: its type is %q", errBadFrame, _frame.Type))`},
		{3, 1, "watch", "maxVersionRefusals", `4`, `1 << 30`},

		{5, 2, "watch", "sequence.advance", `_X || ident.IsNewer(_q._at, _version)`, `_X`},
		{6, 2, "watch", "sequence.bookmark", `_q.advance(_version)`, ``},
		{7, 2, "watch", "objectTracker.remove", `if _isListing {`, `if false && _isListing {`},
		{8, 2, "watch", "watcher.request", `"allowWatchBookmarks", "true"`, `"allowWatchBookmarks", "false"`},
		{9, 2, "watch", "expectedState.isLost", `ident.IsNewer(_Expected, _Served)`, `false`},

		{10, 3, "watch", "objectTracker.takeMissing", `_Listed == _List || _Undecodable[_key]`, `true || _Listed == _List || _Undecodable[_key]`},
		{11, 3, "watch", "objectTracker.put", `!_Old.HasSameUID(_v)`, `false && !_Old.HasSameUID(_v)`},
		{12, 3, "watch", "objectTracker.put", `_Old.Equal(_v)`, `false && _Old.Equal(_v)`},
		{13, 3, "watch", "objectTracker.remove", `_X || !_Old.HasSameUID(_v)`, `_X`},
		{14, 3, "watch", "follower.handleNotFound", `case _failed != nil:`, `case _failed != nil && ctx.Err() != nil:`},

		{16, 4, "watch", "sequence.put", `_q._tracker.putUndecodable(_id)`, `_ = _id`},
		{17, 4, "watch", "objectTracker.putUndecodable", `_t._hasUnnamed = true`, `_t._hasUnnamed = false`},

		{19, 5, "watch", "backoffDelay", `minBackoff << min(_n-1, 10)`, `minBackoff << min(_n-_n, 10)`},
		{20, 5, "watch", "backoffDelay", `_d = max(_d, _e.RetryDelay())`, `_ = _e`},
		{22, 5, "watch", "watcher.read", `time.Since(_opened) < minWatchDuration`, `time.Since(_opened) < 0`},

		{23, 6, "watch", "watcher.readFrames", `_idle.resume()`, ``},
		{24, 6, "watch", "backoff.recordError", `_r := reaction{_isReported: true}`, `_r := reaction{_isReported: false}`},
	}
}
