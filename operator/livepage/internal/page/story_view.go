package page

import (
	"context"
	"strconv"
)

// maxStory bounds the steps of a story.
const maxStory = 100

// writeStory writes the story of an object: its state, and then the newest of its changes and of the reconciles that
// are about it, the newest one first.
func writeStory(ctx context.Context, m *markup, s *Sources, h *history, o objectName) {
	writeStoryState(m, cachedObject(ctx, s, o))
	reconciles, _, _ := h.reconcilesBetween(0, 0, maxStory, func(r *reconcile) bool { return r.isAbout(o) })
	changes, count := h.changesOf(o), 0
	m.write(`<h2>Timeline</h2><ol class="timeline">`)
	for ; count < maxStory && len(reconciles)+len(changes) > 0; count++ {
		if len(changes) == 0 || len(reconciles) > 0 && reconciles[0].Ended.After(changes[0].At) {
			reconcileView{h, ""}.writeReconcileStep(m, reconciles[0], o)
			reconciles = reconciles[1:]
		} else {
			writeChangeStep(m, changes[0])
			changes = changes[1:]
		}
	}
	m.write(`</ol>`)
	switch count {
	case 0:
		m.write(`<p class="note">Nothing that is kept is about this object.</p>`)
	case maxStory:
		m.write(`<p class="note">These are the newest % steps.</p>`, strconv.Itoa(maxStory))
	}
}

// writeStoryState writes the object as the cache has it. o is nil if the cache does not have the object.
func writeStoryState(m *markup, o *shownObject) {
	if o == nil {
		m.write(`<p class="note">The cache of the program does not hold this object now.</p>`)
		return
	}
	m.write(`<div class="cards"><div class="card"><h3>Now</h3><dl><div><dt>generation</dt><dd>%</dd></div></dl><p class="note">created %</p>`,
		strconv.Itoa(int(o.Metadata.Generation)), o.Metadata.CreationTimestamp)
	if o.Metadata.DeletionTimestamp != "" {
		m.write(`<p class="note"><span class="badge bad">being deleted</span> since %</p>`, o.Metadata.DeletionTimestamp)
	}
	for _, finalizer := range o.Metadata.Finalizers {
		m.write(`<p class="note">finalizer %</p>`, finalizer)
	}
	m.write(`</div>`)
	for i := range o.Status.Conditions {
		c := &o.Status.Conditions[i]
		m.write(`<div class="card"><h3>Condition</h3><p class="badges"><span class="%">% %</span> <span class="reason">%</span></p><p class="note">%</p><p class="note">since %</p></div>`,
			classOfCondition(c.Type, c.Status), c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
	}
	m.write(`</div>`)
}

// writeChangeStep writes a change as a step of the story of its object.
func writeChangeStep(m *markup, c *change) {
	m.write(`<li class="step change"><p class="head">`)
	writeTime(m, c.At)
	m.write(` <span class="badge">change</span> the object was <span class="verb">%</span>`, c.Type)
	content := writeChangeContent(m, c)
	for i := range content.Conditions {
		writeCondition(m, &content.Conditions[i])
	}
	m.write(`</li>`)
}
