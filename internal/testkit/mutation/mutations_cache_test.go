package mutation

// cacheMutations returns the mutations of package cache and of the packages below it.
func cacheMutations() []mutation {
	return []mutation{
		{15, 3, "internal/cache", "updater.endList", `_u._missed.afterList(_version, _Began)`, `_u._missed.afterList(_version, _Began)[:0]`},

		{18, 4, "internal/cache", "updater.markUndecodable", `_u._writer.MarkUndecodable(_err)`, `_ = _err`},

		{27, 7, "internal/cache", "writeHandler.write", `!isDryRun(_r) && _X`, `_X`},
		{28, 7, "internal/cache/internal/overlay", "Entry.IsObservedBy", `_known && ident.HasReached(_Version, _last)`, `_known || ident.HasReached(_Version, _last)`},
		{29, 7, "internal/cache/internal/overlay", "Entry.isOld", `_e._isMarkedOld || _X`, `_X`},
		{30, 7, "internal/cache/internal/overlay", "Overlay.InvalidateGroups", `Entry{Kind: UnknownState, Former: _e.Values()}`, `_e`},
		{31, 7, "internal/cache/internal/overlay", "Overlay.Record", `!_isRecorded`, `false && !_isRecorded`},
		{32, 7, "internal/cache", "View.coveringStore", `_X || !_v.isCurrent(_s, _namespace)`, `_X`},
		{33, 7, "internal/cache/internal/restoration", "Recorder.Advance", `!_isShown`, `false && !_isShown`},

		{38, 8, "internal/cache", "Store.isWatching", `!_s._progress.OpenSince().IsZero()`, `true`},
	}
}
