package main

// mutation is a small change of yare's code that breaks a promise of docs/guarantees.md.
type mutation struct {
	// promise is the number of the promise.
	promise int
	// file is a path below the root of the module.
	file string
	// before is a text that the file has exactly once, and after the text in its place.
	before, after string
}

// allMutations returns the mutations, in the order of their promises.
func allMutations() []mutation {
	return []mutation{
		{1, "watch/follow.go", "case kube.IsGone(err):", "case false:"},
		{1, "watch/frame.go", "return f.stream.StatusError(frame.Object)", `return f.watchError(fmt.Errorf("%w: its type is %q", errBadFrame, frame.Type))`},
		{1, "watch/follow.go", "maxVersionRefusals = 4", "maxVersionRefusals = 1 << 30"},
		{1, "kube/errors.go", "http.StatusGone, metav1.StatusReasonExpired, metav1.StatusReasonGone", "http.StatusGone, metav1.StatusReasonGone"},

		{2, "watch/frame.go", "|| version == f.version || ident.IsNewer(f.version, version) {", "|| version == f.version {"},
		{2, "watch/frame.go", "f.advance(bookmark.Metadata.ResourceVersion)", ""},
		{2, "watch/object_tracker.go", "if listing {", "if false && listing {"},
		{2, "watch/watch.go", `"allowWatchBookmarks", "true",`, `"allowWatchBookmarks", "false",`},
		{2, "watch/probe.go", "case ident.IsNewer(s.version, state.version):", "case false:"},

		{3, "watch/object_tracker.go", "if o.list == t.list || t.undecodable[key] {", "if true || o.list == t.list || t.undecodable[key] {"},
		{3, "watch/object_tracker.go", "case !old.version.HasSameUID(v):", "case false && !old.version.HasSameUID(v):"},
		{3, "watch/object_tracker.go", "case old.version.Equal(v):", "case false && old.version.Equal(v):"},
		{3, "watch/object_tracker.go", "if !known || !old.version.HasSameUID(v) || t.isRepeated(v, old) {", "if !known || t.isRepeated(v, old) {"},
		{3, "watch/absence.go", "case failed != nil:", "case failed != nil && ctx.Err() != nil:"},
		{3, "cache/relist.go", "vanished := s.takeVanished(version, restored)", "vanished := s.takeVanished(version, restored)[:0]"},

		{4, "watch/frame.go", "f.tracker.putUndecodable(id.Key, named)", "_ = named"},
		{4, "watch/object_tracker.go", "t.unnamed = true", "t.unnamed = false"},
		{4, "cache/stream.go", "s.writer.MarkUnreadable(unreadable)", "_ = unreadable"},

		{5, "watch/backoff.go", "minBackoff<<min(n-1, 10)", "minBackoff<<min(n-n, 10)"},
		{5, "watch/backoff.go", "d = max(d, e.RetryDelay())", "_ = e"},
		{5, "kube/errors.go", "return min(max(e.RetryAfter, 0), MaxRetryDelay)", "return max(e.RetryAfter, 0)"},
		{5, "watch/watch.go", "case time.Since(opened) < minWatchDuration:", "case time.Since(opened) < 0:"},

		{6, "watch/watch.go", "idle.resume()", ""},
		{6, "watch/follow.go", "report := true", "report := false"},
		{6, "kube/timeout.go", "r.timeout.restart()", "_ = r.timeout"},
		{6, "kube/transport.go", "if !timeout.timer.Stop() {", "if false {"},

		{7, "cache/writes.go", "if isDryRun(r) || response != nil && response.Cached {", "if response != nil && response.Cached {"},
		{7, "cache/internal/overlay/entry.go", "return known && ident.HasReached(o.Version, last)", "return known || ident.HasReached(o.Version, last)"},
		{7, "cache/internal/overlay/entry.go", "return e.isDistrusted || time.Since(e.recorded) > MaxAge", "return time.Since(e.recorded) > MaxAge"},
		{7, "cache/internal/overlay/overlay.go", "(e.Kind == Tombstone || e.isNewer(version))", "e.isNewer(version)"},
		{7, "cache/internal/overlay/overlay.go", "if !isOfPresent {", "if false && !isOfPresent {"},
		{7, "cache/view.go", "!s.store.Synced() || !v.isCurrent(s, namespace) || !condition(s.store) {", "!s.store.Synced() || !condition(s.store) {"},
		{7, "cache/expected.go", `if !isShown && s.lostSince == "" {`, `if false && !isShown && s.lostSince == "" {`},

		{8, "controller/internal/noop/checker.go", "known = known && last.uid == live.uid && last.content == a.content", "known = known && last.uid == live.uid"},
		{8, "controller/internal/noop/checker.go", "\t\th.forget(k)\n\t\treturn nil, err", "\t\treturn nil, err"},
		{8, "controller/internal/noop/fields.go", "return found == len(wanted)\n", "return found <= len(wanted)\n"},
		{8, "controller/internal/noop/fields.go", "return reflect.DeepEqual(wanted, live) &&", "return true ||"},
		{8, "cache/store.go", "func (s *Store) isWatching() bool { return !s.progress.OpenSince().IsZero() }", "func (s *Store) isWatching() bool { return true }"},
		{8, "controller/internal/noop/object.go", `delete(fields, "status")`, ""},

		{9, "kube/retry.go", "if e.Unknown && !isRepeatable(r) {", "if false && e.Unknown && !isRepeatable(r) {"},
		{9, "kube/retry.go", `return r.Preconditions.UID != ""`, "return true"},
		{9, "kube/retry.go", "if IsNotFound(e) || IsUIDConflict(e) || IsConflict(e) && h.isDeleted(ctx, r) {", "if IsUIDConflict(e) || IsConflict(e) && h.isDeleted(ctx, r) {"},
		{9, "kube/limit.go", "if !r.Verb.IsWrite() {", "if true || !r.Verb.IsWrite() {"},

		{10, "kube/prune.go", `return name != "status" || withStatus`, "return true"},
		{10, "kube/prune.go", `string(v) == "null" || m.dropEmpty && string(v) == "{}"`, `m.dropEmpty && string(v) == "{}"`},
		{10, "kube/prune.go", "f.Type.Kind() == reflect.Struct && (!key.tagged || mayBeOmitted(options))", "f.Type.Kind() == reflect.Struct && (true || !key.tagged || mayBeOmitted(options))"},
		{10, "kube/status.go", "live.Generation == 0 || live.Generation != obj.GetGeneration() {", "live.Generation == 0 {"},
		{10, "kube/write.go", "case len(obj.GetManagedFields()) > 0:", "case false:"},

		{11, "controller/internal/queue/queue.go", "w, echo, maybe := e.next, e.echo, e.maybe", "w, echo, maybe := noWish(), e.echo, e.maybe"},
		{11, "controller/engine.go", "if e.waitSynced(ctx) && e.waitElected(ctx) {", "if e.waitElected(ctx) {"},
		{11, "controller/engine.go", "select {\n\tcase <-e.mapper.barrier():\n", "e.mapper.barrier()\n\tselect {\n\tdefault:\n"},
		{11, "controller/owned.go", "if !to.resource.ClusterScoped {", "if true {"},

		{12, "controller/internal/queue/entry.go", "if o.due < w.due {", "if o.due < w.due && w.due == never {"},
		{12, "controller/internal/queue/queue.go", "case e.state == backingOff && (t.Echo == IsEcho || w.low):", "case e.state == backingOff && t.Echo == IsEcho:"},
		{12, "controller/echo.go", "case uid == before.uid && !ident.IsNewer(version, before.resourceVersion), version == replaced:", "case version == replaced:"},
		{12, "controller/echo.go", "if by.key == f.key {", "if true {"},
		{12, "controller/changes.go", "if change.Missed || sub.isOwn && (", "if sub.isOwn && ("},
		{12, "controller/echo.go", "return !v.endsLife && !v.changesSpec", "return !v.changesSpec"},

		{13, "controller/changes.go", "c.priority = queue.Low", "c.priority = queue.High"},
		{13, "controller/internal/queue/queue.go", "case q.ready[Low].len > 0 && q.overtaken[Low] >= lowShare-1:", "case false:"},
		{13, "controller/internal/queue/queue.go", "q.setReady(e, Due, since)", "q.setReady(e, High, since)"},
		{13, "controller/mapped.go", "func (mapRelation) isSlow() bool { return true }", "func (mapRelation) isSlow() bool { return false }"},

		{14, "controller/owned.go", "owner.Group != to.resource.Group || owner.Kind != to.resource.Kind {", "owner.Kind != to.resource.Kind {"},
		{14, "controller/changes.go", "return !ok || string(o.UID) == k.uid", `return !ok || o.UID != ""`},
		{14, "controller/ownership.go", "if !r.Resource.ClusterScoped && r.Namespace == owner.Namespace {", "if !r.Resource.ClusterScoped {"},

		{15, "controller/mapper.go", "failed = true\n", "failed = false\n"},
		{15, "controller/reconcile.go", "running.Go(func() { e.worker(ctx, work, running) })", ""},
		{15, "controller/running.go", "if d < c.reportAfter {", "if d < 100*c.reportAfter {"},
		{15, "controller/mapper.go", "running.Go(func() { e.mapChanges(ctx, running) })", ""},

		{16, "controller/report.go", "case !IsTerminal(r.Err) && isConflict(r.Err):", "case false:"},
		{16, "controller/report.go", "if lasted < f.conflictReportAfter {", "if lasted >= 0 {"},
		{16, "operator/metrics.go", "if r.Verb.IsWrite() && kube.IsConflict(err) {", "if false {"},

		{17, "controller/reconcile.go", "if err != nil || !cleanup.isDone {", "if err != nil {"},
		{17, "controller/changes.go", "(endsLife(change) || e.mayEndPause(change)) {", "e.mayEndPause(change) {"},
		{17, "controller/finalizer.go", "func(f string) bool { return f == e.finalizer }", "func(f string) bool { return true }"},
		{17, "controller/reconcile.go", "if found == selected && obj.GetDeletionTimestamp() == nil && e.isPaused(obj) {", "if found == selected && e.isPaused(obj) {"},

		{18, "controller/engine.go", "case <-time.After(e.grace):", "case <-time.After(100 * e.grace):"},
		{18, "controller/engine.go", "context.WithCancelCause(context.WithoutCancel(ctx))", "context.WithCancelCause(ctx)"},
		{18, "operator/program.go", "if !first {", "if !first && false {"},

		{19, "internal/lease/fence.go", "f.timing.Deadline - f.clock().longestSince(f.sent); left > 0", "f.timing.Duration - f.clock().longestSince(f.sent); left > 0"},
		{19, "internal/lease/elector.go", "\tcase err == nil:\n\t\te.candidate.recordSuccess(stored, sent)", "\tcase err == nil:\n\t\te.candidate.recordSuccess(stored, e.clock())"},
		{19, "internal/lease/candidate.go", "now.shortestSince(c.seenAt)", "now.longestSince(c.seenAt)"},
		{19, "internal/lease/fence.go", "bounded.Query = withTimeout(r.Query, left)", ""},
		{19, "internal/lease/fence.go", "return !f.hasDoubt || f.clock().shortestSince(f.doubtAt) > f.timing.Duration", "return true"},

		{20, "controller/trace.go", "t.reads++", ""},
		{20, "controller/reconcile.go", "Causes: r.item.Causes.String(),", ""},
		{20, "controller/reconcile.go", "result.Err, result.Duration = err, time.Since(r.started)", "result.Err = err"},
		{20, "controller/trace.go", "w.Skipped, w.Failed = err == nil && response.Cached, err != nil", "w.Failed = err != nil"},

		{21, "internal/access/checker.go", "r.Namespace == c.own && slices.ContainsFunc(c.grants.Own, isAllowed)", "slices.ContainsFunc(c.grants.Own, isAllowed)"},
		{21, "internal/access/checker.go", "(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, objectName(r)))", "true"},
		{21, "operator/declared.go", "if len(missing) == 0 {", "if len(missing) < 2 {"},
		{21, "internal/access/access.go", "if len(namespaces) == 0 && !a.OwnNamespace {", "if len(namespaces) == 0 {"},

		{22, "controller/adoption.go", "case controls:", "case controls && false:"},
		{22, "controller/adoption.go", "case named || r.Adopt || a.hasWritten(r, object, false):", "case true:"},
		{22, "controller/adoption.go", "if guarded.Body, err = withMetadata(r.Body, member, value); err != nil {", "if _, err = withMetadata(r.Body, member, value); err != nil {"},
		{22, "controller/adoption.go", "&& o.Kind == owner.Resource.Kind && o.Name == owner.Name", "&& o.Kind == owner.Resource.Kind"},

		{23, "operator/internal/uninstall/objects.go", "case !u.DeleteObjects:", "case false:"},
		{23, "operator/internal/uninstall/objects.go", "} else if u.AbandonCleanup && u.needsCleanup(o) {", "} else if u.needsCleanup(o) {"},
		{23, "operator/internal/uninstall/cluster.go", `case others != "":`, `case others != "" && false:`},
		{23, "operator/internal/uninstall/cluster.go", "== u.Name && isCreatedWithLabels(namespace) {", "== u.Name {"},
	}
}
