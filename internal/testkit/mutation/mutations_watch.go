package main

// watchMutations returns the mutations of package watch.
func watchMutations() []mutation {
	return []mutation{
		{1, 1, "watch", "follower.handleError", `kube.IsGone(_err)`, `false`},
		{2, 1, "watch", "follower.handleFrame", `_f._stream.StatusError(_frame._object)`, `_f.watchError(fmt.Errorf("%w: its type is %q", errBadFrame, _frame.Type))`},
		{3, 1, "watch", "maxVersionRefusals", `4`, `1 << 30`},

		{5, 2, "watch", "follower.advance", `_X || ident.IsNewer(_f._at, _version)`, `_X`},
		{6, 2, "watch", "follower.handleBookmark", `_f.advance(_Version)`, ``},
		{7, 2, "watch", "objectTracker.remove", `if _listing {`, `if false && _listing {`},
		{8, 2, "watch", "follower.watchRequest", `"allowWatchBookmarks", "true"`, `"allowWatchBookmarks", "false"`},
		{9, 2, "watch", "expectedState.isLost", `ident.IsNewer(_Expected, _Served)`, `false`},

		{10, 3, "watch", "objectTracker.missing", `_Listed == _List || _Undecodable[_key]`, `true || _Listed == _List || _Undecodable[_key]`},
		{11, 3, "watch", "objectTracker.put", `!_Old.HasSameUID(_v)`, `false && !_Old.HasSameUID(_v)`},
		{12, 3, "watch", "objectTracker.put", `_Old.Equal(_v)`, `false && _Old.Equal(_v)`},
		{13, 3, "watch", "objectTracker.remove", `_X || !_Old.HasSameUID(_v)`, `_X`},
		{14, 3, "watch", "follower.handleNotFound", `case _failed != nil:`, `case _failed != nil && ctx.Err() != nil:`},

		{16, 4, "watch", "follower.put", `_f._tracker.putUndecodable(_Key, _named)`, `_ = _named`},
		{17, 4, "watch", "objectTracker.putUndecodable", `_t._unnamed = true`, `_t._unnamed = false`},

		{19, 5, "watch", "backoffDelay", `minBackoff << min(_n-1, 10)`, `minBackoff << min(_n-_n, 10)`},
		{20, 5, "watch", "backoffDelay", `_d = max(_d, _e.RetryDelay())`, `_ = _e`},
		{22, 5, "watch", "follower.readWatch", `time.Since(_opened) < minWatchDuration`, `time.Since(_opened) < 0`},

		{23, 6, "watch", "follower.readFrames", `_idle.resume()`, ``},
		{24, 6, "watch", "follower.handleError", `_report := true`, `_report := false`},
	}
}
