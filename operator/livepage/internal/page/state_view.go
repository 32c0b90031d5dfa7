package page

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// maxShownFailing bounds the failing objects that the page shows.
const maxShownFailing = 20

// writeState writes the state of the program at one moment. It does not wait for anything.
func writeState(ctx context.Context, m *markup, s *Sources, recorder *Recorder, counter *objectCounter) {
	now, streams := time.Now(), s.Streams()
	m.write(`<div class="cards">`)
	writeHealth(m, s)
	for _, queue := range recorder.allQueues() {
		q, failing := queue.stats(), ""
		if q.Failing > 0 {
			failing = "bad"
		}
		m.write(
			`<div class="card"><h3>Queue of %</h3><dl><div><dt>ready</dt><dd>%</dd></div><div><dt>waiting</dt><dd>%</dd></div>`+
				`<div><dt>running</dt><dd>%</dd></div><div><dt>failing</dt><dd class="%">%</dd></div></dl>`,
			queue.controller, strconv.Itoa(q.Ready), strconv.Itoa(q.Waiting), strconv.Itoa(q.Running), failing,
			strconv.Itoa(q.Failing))
		if q.Oldest >= time.Second {
			m.write(`<p class="note">the oldest one has been due for %</p>`, shownDuration(q.Oldest))
		}
		m.write(`</div>`)
	}
	kinds := counter.counts(ctx, s, streams)
	for i := range kinds {
		writeKind(m, &kinds[i])
	}
	memory := s.Memory()
	m.write(`<div class="card"><h3>Memory</h3><dl>`)
	writeBytes(m, "resident", memory.Resident)
	writeBytes(m, "heap", memory.Heap)
	writeBytes(m, "limit", memory.Limit)
	m.write(`<div><dt>goroutines</dt><dd>%</dd></div></dl></div></div>`, strconv.Itoa(memory.Goroutines))
	writeFailing(m, recorder.history.failingObjects(), now)
	writeContested(m, recorder.contestedFields(), now)
	m.write(`<h2>Streams</h2><div class="scroll"><table class="list"><thead><tr><th>Resource</th><th>State</th><th>Last event</th><th>Objects</th><th>Memory</th><th>Lists again</th><th>Errors</th></tr></thead><tbody>`)
	for i := range streams {
		each := &streams[i]
		writeStream(m, &each.Stream, each.Synced, each.Watching, each.LastEvent, now)
		m.write(`<td>%</td><td>%</td><td>%</td><td>%</td></tr>`,
			strconv.Itoa(each.Objects), shownBytes(float64(each.Bytes+each.Dictionary)),
			strconv.FormatUint(each.Restarts, 10), strconv.FormatUint(each.Errors, 10))
	}
	uncached := s.UncachedStreams()
	for i := range uncached {
		each := &uncached[i]
		writeStream(m, &each.Stream, each.Synced, each.Watching, each.LastEvent, now)
		m.write(`<td>–</td><td>–</td><td>–</td><td>–</td></tr>`)
	}
	m.write(`</tbody></table></div>`)
}

// writeHealth writes whether the program leads and is ready, and its certificates.
func writeHealth(m *markup, s *Sources) {
	reasons := s.UnreadyReasons()
	class, text := "badge good", "ready"
	if len(reasons) > 0 {
		class, text = "badge bad", "not ready"
	}
	m.write(
		`<div class="card"><h3>Program</h3><p class="badges"><span class="%">%</span> <span class="badge">%</span></p>`,
		class, text, cmp.Or(s.Leadership(), "no leader election"))
	for _, reason := range reasons {
		m.write(`<p class="note">%</p>`, reason)
	}
	ends := s.CertificateEnds()
	for _, use := range slices.Sorted(maps.Keys(ends)) {
		m.write(`<p class="note">the certificate of % ends on %</p>`, use, ends[use].UTC().Format("2006-01-02 15:04 UTC"))
	}
	m.write(`</div>`)
}

// writeKind writes how many objects of a kind there are, by their conditions.
func writeKind(m *markup, k *kindCount) {
	m.write(`<div class="card"><h3>% objects</h3><dl><div><dt>all</dt><dd>%</dd></div>`,
		k.Resource.Kind, strconv.Itoa(k.Count))
	if k.Deleting > 0 {
		m.write(`<div><dt>being deleted</dt><dd>%</dd></div>`, strconv.Itoa(k.Deleting))
	}
	m.write(`</dl><p class="badges">`)
	for i := range k.Conditions {
		c := &k.Conditions[i]
		m.write(`<span class="%">% %: %</span> `, classOfCondition(c.Type, c.Status), c.Type, c.Status, strconv.Itoa(c.Count))
	}
	m.write(`</p></div>`)
}

// writeFailing writes the objects whose last reconcile failed.
func writeFailing(m *markup, failing []*reconcile, now time.Time) {
	if len(failing) == 0 {
		return
	}
	m.write(`<h2>Failing objects</h2><div class="scroll"><table class="list"><thead><tr><th>Object</th><th>Last error</th><th>Failures</th><th>Next try</th></tr></thead><tbody>`)
	hidden := max(0, len(failing)-maxShownFailing)
	for i := len(failing) - 1; i >= hidden; i-- { // the newest one first
		r := failing[i]
		m.write(`<tr><td>`)
		m.objectLink("live-page/", r.Object)
		next := "due"
		if left := r.Ended.Add(r.Next).Sub(now); r.Next == 0 {
			next = "after a change"
		} else if left > 0 {
			next = "in " + shownDuration(left)
		}
		m.write(`</td><td class="error">%</td><td>%</td><td>%</td></tr>`, r.Error, strconv.Itoa(r.Attempt), next)
	}
	m.write(`</tbody></table></div>`)
	if hidden > 0 {
		m.write(`<p class="note">% more fail</p>`, strconv.Itoa(hidden))
	}
}

// writeContested writes the fields that were set back again and again.
func writeContested(m *markup, fields []contestedField, now time.Time) {
	if len(fields) == 0 {
		return
	}
	m.write(`<h2>Contested fields</h2><div class="scroll"><table class="list"><thead><tr><th>Object</th><th>Field</th><th>Changed by</th><th>Seen</th></tr></thead><tbody>`)
	for i := len(fields) - 1; i >= 0; i-- { // the newest one first
		f := &fields[i]
		m.write(`<tr><td>`)
		m.objectLink("live-page/", f.Object)
		m.write(`</td><td>%</td><td>%</td><td>% ago</td></tr>`,
			f.Path, cmp.Or(f.Manager, "unknown: removed"), shownAge(now.Sub(f.At)))
	}
	m.write(`</tbody></table></div>`)
}

// writeStream writes the first cells of a stream.
func writeStream(m *markup, s *wire.Stream, isSynced, isWatching bool, lastEvent, now time.Time) {
	representation, class, text, last := "", "badge good", "watching", "none yet"
	if s.Representation == wire.MetadataOnly {
		representation = "metadata only"
	}
	switch {
	case !isSynced:
		class, text = "badge bad", "not listed yet"
	case !isWatching:
		class, text = "badge bad", "not watching"
	}
	if !lastEvent.IsZero() {
		last = shownAge(now.Sub(lastEvent)) + " ago"
	}
	m.write(`<tr><td>% <span class="muted">%</span></td><td><span class="%">%</span></td><td>%</td>`,
		s.String(), representation, class, text, last)
}

// writeBytes writes a number of bytes with its name, unless the number is not known or stands for no limit.
func writeBytes(m *markup, name string, count float64) {
	if count > 0 && count < 1<<50 {
		m.write(`<div><dt>%</dt><dd>%</dd></div>`, name, shownBytes(count))
	}
}

// classOfCondition returns the class of a condition: good, bad or neither. A condition that is False is bad only if its
// type is one of those that are True when all is well.
func classOfCondition(conditionType, status string) string {
	const good = " Ready Available Complete Established Progressing Initialized ContainersReady PodScheduled "
	switch {
	case !strings.Contains(good, " "+conditionType+" "):
		return "badge"
	case status == "True":
		return "badge good"
	}
	return "badge bad"
}

// shownDuration returns a duration in short, such as 1.25ms, 310ms or 1m20s.
func shownDuration(d time.Duration) string {
	unit := time.Second
	switch {
	case d < time.Millisecond:
		unit = time.Microsecond
	case d < 10*time.Millisecond:
		unit = 10 * time.Microsecond
	case d < time.Second:
		unit = time.Millisecond
	case d < time.Minute:
		unit = 100 * time.Millisecond
	}
	return d.Round(unit).String()
}

// shownAge returns a duration as a text that seldom changes: a moment, 20 s, 3 min or 2 h.
func shownAge(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "a moment"
	case d < time.Minute:
		return strconv.Itoa(int(d/(10*time.Second))*10) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	default:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	}
}

// shownBytes returns a number of bytes, such as 14.9 MB.
func shownBytes(count float64) string {
	if count < 1e5 {
		return strconv.FormatFloat(count/1e3, 'f', 1, 64) + " kB"
	}
	return strconv.FormatFloat(count/1e6, 'f', 1, 64) + " MB"
}
