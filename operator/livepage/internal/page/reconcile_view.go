package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/yare-go/yare/controller"
)

// shownFields is how many fields of a write are visible at once. The others unfold.
const shownFields = 6

// reconcileView writes reconciles.
type reconcileView struct {
	history *history
	// base is the path of the page of stories, relative to the page that is written.
	base string
}

// writeRow writes a reconcile as a part of the table of reconciles.
func (v reconcileView) writeRow(m *markup, r *reconcile) {
	m.write(`<tbody class="row %"><tr><td data-label="Time">`, classOfReconcile(r))
	writeTime(m, r.Ended)
	m.write(`</td><td data-label="Object">`)
	m.objectLink(v.base, r.Object)
	if r.IsCleanup {
		m.write(` <span class="badge">cleanup</span>`)
	}
	m.write(`</td><td data-label="Why">`)
	v.writeCauses(m, r)
	m.write(`</td><td data-label="What it did">`)
	v.writeWork(m, r)
	m.write("</td><td data-label=\"Took\">%</td><td data-label=\"Next\">%</td></tr></tbody>\n", durationOf(r), nextOf(r))
}

// writeReconcileStep writes a reconcile as a step of the story of an object.
func (v reconcileView) writeReconcileStep(m *markup, r *reconcile, o objectName) {
	m.write(`<li class="step %"><p class="head">`, classOfReconcile(r))
	writeTime(m, r.Ended)
	work := "reconcile"
	if r.IsCleanup {
		work = "cleanup"
	}
	m.write(` <span class="badge">%</span> `, work)
	if r.Object != o {
		m.write(`of `)
		m.objectLink(v.base, r.Object)
	}
	m.write(` <span class="muted">took %, next: %</span></p>`, durationOf(r), nextOf(r))
	v.writeCauses(m, r)
	v.writeWork(m, r)
	m.write("</li>\n")
}

// classOfReconcile returns the class of a reconcile: conflict, failed, changed or quiet.
func classOfReconcile(r *reconcile) string {
	switch {
	case r.Outcome == controller.OutcomeConflict:
		return "conflict"
	case r.Error != "":
		return "failed"
	case r.HasChanged:
		return "changed"
	}
	return "quiet"
}

// writeCauses writes the causes of a reconcile, with what the changes have changed.
func (v reconcileView) writeCauses(m *markup, r *reconcile) {
	began := r.Ended.Add(-r.Duration)
	m.write(`<ul class="causes">`)
	for _, text := range strings.Split(r.Causes, ", ") {
		m.write(`<li>`)
		o, changeType, rest, ok := parseCause(text)
		if !ok {
			m.write(`%</li>`, text)
			continue
		}
		m.objectLink(v.base, o)
		m.write(` <span class="verb">%</span>%`, changeType, rest)
		for _, c := range v.history.changesOf(o) { // the newest one that came before the reconcile is the cause
			if c.Type == changeType && !c.At.After(began) {
				writeChangeContent(m, c)
				break
			}
		}
		m.write(`</li>`)
	}
	m.write(`</ul>`)
}

// parseCause returns the object and the type of the change of a cause such as "Deployment default/web modified". rest
// is what follows, such as " (5 in all)". It reports whether the cause is a change of an object.
func parseCause(text string) (o objectName, changeType, rest string, ok bool) {
	if i := strings.Index(text, " ("); i >= 0 {
		text, rest = text[:i], text[i:]
	}
	words := strings.Split(text, " ")
	if len(words) != 3 {
		return objectName{}, "", "", false
	}
	o = objectName{Kind: words[0], Name: words[1]}
	if namespace, name, isNamespaced := strings.Cut(words[1], "/"); isNamespaced {
		o.Namespace, o.Name = namespace, name
	}
	return o, words[2], rest, true
}

// writeChangeContent writes what a change has changed, and who made it. It returns what it has written.
func writeChangeContent(m *markup, c *change) *changeContent {
	content := c.content()
	if c.IsConfidential {
		m.write(` <span class="muted">(its content is not shown)</span>`)
	}
	if content.Manager != "" {
		m.write(` <span class="muted">by</span> <span class="manager">%</span>`, content.Manager)
	}
	writeDifference(m, &content.difference)
	return content
}

// writeWork writes the error, the writes and the reads of a reconcile.
func (v reconcileView) writeWork(m *markup, r *reconcile) {
	if r.Error != "" {
		m.write(`<p class="error"><span class="badge bad">%</span> %</p>`, string(r.Outcome), r.Error)
	}
	skippedCount := 0
	for _, w := range r.Writes {
		if w.IsSkipped {
			skippedCount++
		} else {
			v.writeWrite(m, w)
		}
	}
	if r.MoreWrites > 0 {
		m.write(`<p class="note">% more</p>`, countText(r.MoreWrites, "write"))
	}
	if r.Error == "" && !r.HasChanged {
		m.write(`<span class="muted">changed nothing</span> `)
	}
	var summary string
	switch {
	case skippedCount+r.ReadCount == 0:
		return
	case skippedCount == 0:
		summary = countText(r.ReadCount, "read")
	case r.ReadCount == 0:
		summary = countText(skippedCount, "skipped write")
	default:
		summary = countText(r.ReadCount, "read") + ", " + countText(skippedCount, "skipped write")
	}
	m.write(`<details class="more"><summary>%</summary><ul>`, summary)
	for _, w := range r.Writes {
		if w.IsSkipped {
			m.write(`<li>skipped, because it would change nothing: `)
			v.writeTarget(m, w)
			m.write(`</li>`)
		}
	}
	for _, read := range r.Reads {
		m.write(`<li>%</li>`, read)
	}
	m.write(`</ul></details>`)
}

// writeWrite writes one write that was sent.
func (v reconcileView) writeWrite(m *markup, w *write) {
	m.write(`<div class="write">`)
	v.writeTarget(m, w)
	class, text := "muted", ""
	switch {
	case w.Error != "":
		class, text = "badge bad", "failed"
	case w.IsConfidential:
		class, text = "badge", "changed"
	case w.IsCreated:
		class, text = "badge good", "created"
	case w.isDeletion():
		class, text = "badge bad", "deleted"
	case w.IsUnknown:
		text = "the state before is not known"
	case len(w.Difference.Fields) == 0:
		text = "changed no field"
	}
	m.write(` <span class="%">%</span>`, class, text)
	if w.Error != "" {
		m.write(`<p class="error">%</p>`, w.Error)
	}
	writeDifference(m, &w.Difference)
	for i := range w.Conditions {
		writeCondition(m, &w.Conditions[i])
	}
	m.write(`</div>`)
}

// writeTarget writes the verb and the object of a write.
func (v reconcileView) writeTarget(m *markup, w *write) {
	m.write(`<span class="verb">%</span> `, w.Verb)
	m.objectLink(v.base, w.Object)
	m.write(` <span class="subresource">%</span>`, w.Subresource)
	if w.IsDryRun {
		m.write(` <span class="badge">dry run</span>`)
	}
}

// writeDifference writes the fields that differ.
func writeDifference(m *markup, d *difference) {
	shown := min(len(d.Fields), shownFields)
	if shown == 0 {
		return
	}
	writeFields(m, d.Fields[:shown])
	if hidden := len(d.Fields) - shown + d.MoreCount; hidden > 0 {
		m.write(`<details class="more"><summary>% more</summary>`, countText(hidden, "field"))
		writeFields(m, d.Fields[shown:])
		if d.MoreCount > 0 {
			m.write(`<p class="note">and % that are not kept</p>`, countText(d.MoreCount, "field"))
		}
		m.write(`</details>`)
	}
}

// writeFields writes fields with their values before and after.
func writeFields(m *markup, fields []fieldChange) {
	m.write(`<ul class="fields">`)
	for i := range fields {
		f := &fields[i]
		m.write(`<li><code>%</code> <del>%</del> <ins>%</ins></li>`, f.Path, f.Before, f.After)
	}
	m.write(`</ul>`)
}

// writeCondition writes the status of a condition.
func writeCondition(m *markup, c *condition) {
	m.write(
		`<p class="condition"><span class="%">% %</span> <span class="reason">%</span> <span class="muted">%</span></p>`,
		classOfCondition(c.Type, c.Status), c.Type, c.Status, c.Reason, c.Message)
}

// writeTime writes a time of day, with the date for the script.
func writeTime(m *markup, t time.Time) {
	text := t.UTC().Format("2006-01-02T15:04:05.000Z")
	m.write(`<time datetime="%">%</time>`, text, text[len("2006-01-02T"):len(text)-1])
}

// durationOf returns how long a reconcile took, and how long it waited before if that is much.
func durationOf(r *reconcile) string {
	text := shownDuration(r.Duration)
	if r.Waited >= 10*time.Millisecond {
		text += ", after " + shownDuration(r.Waited) + " in the queue"
	}
	return text
}

// nextOf returns when the next reconcile is due if nothing changes.
func nextOf(r *reconcile) string {
	switch {
	case r.Next > 0 && r.Error != "":
		return "again in " + shownDuration(r.Next)
	case r.Next > 0:
		return "in " + shownDuration(r.Next)
	case r.Error != "":
		return "after a change"
	}
	return "–"
}

// countText returns a number with what it counts, such as "3 writes".
func countText(count int, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return strconv.Itoa(count) + " " + noun
}
