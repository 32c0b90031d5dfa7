package main

// cacheMutations returns the mutations of package cache and of the packages below it.
func cacheMutations() []mutation {
	return []mutation{
		{15, 3, "cache", "stream.endList", `_s.takeVanished(_version, _restored)`, `_s.takeVanished(_version, _restored)[:0]`},

		{18, 4, "cache", "stream.applyError", `_s._writer.MarkUnreadable(_unreadable)`, `_ = _unreadable`},

		{27, 7, "cache", "View.recordWrite", `isDryRun(_r) || _X`, `_X`},
		{28, 7, "cache/internal/overlay", "Entry.IsObservedBy", `_known && ident.HasReached(_Version, _last)`, `_known || ident.HasReached(_Version, _last)`},
		{29, 7, "cache/internal/overlay", "Entry.isOld", `_e._isDistrusted || _X`, `_X`},
		{30, 7, "cache/internal/overlay", "Overlay.DoubtNewer", `(_e._kind == Tombstone || _e.isNewer(_version))`, `_e.isNewer(_version)`},
		{31, 7, "cache/internal/overlay", "Overlay.Record", `!_isOfPresent`, `false && !_isOfPresent`},
		{32, 7, "cache", "View.coveringStore", `_X || !_v.isCurrent(_s, _namespace)`, `_X`},
		{33, 7, "cache", "stream.advance", `!_isShown && _s._lostSince == ""`, `false && !_isShown && _s._lostSince == ""`},

		{38, 8, "cache", "Store.isWatching", `!_s._progress.OpenSince().IsZero()`, `true`},
	}
}
