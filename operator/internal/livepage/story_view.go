package livepage

import "strconv"

// writeStory writes the story of an object.
func writeStory(m *markup, v reconcileView, s *story) {
	writeStoryState(m, s.State)
	m.write(`<h2>Timeline</h2>`)
	if len(s.Steps) == 0 {
		m.write(`<p class="note">Nothing that is kept is about this object.</p>`)
	}
	m.write(`<ol class="timeline">`)
	for i := range s.Steps {
		if c := s.Steps[i].Change; c != nil {
			writeChangeStep(m, c)
		} else {
			v.writeReconcileStep(m, s.Steps[i].Reconcile, s.Object)
		}
	}
	m.write(`</ol>`)
	if len(s.Steps) == maxStory {
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
		strconv.FormatInt(o.Metadata.Generation, 10), o.Metadata.CreationTimestamp)
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
