package proxy

import (
	"sync"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// journal records the requests of a proxy, and gives them their points.
type journal struct {
	// mask replaces what differs between runs. It is nil if points have neither normalized names nor hashes.
	mask *mask

	mu      sync.Mutex
	records []*journalRecord
	step    int
	// occurrences counts the requests of the step by their points without occurrence.
	occurrences map[Point]int
	// awaited counts the requests under way for which [Activity.InFlight] waits.
	awaited int
	// lastRequest is [Activity.LastRequest].
	lastRequest time.Time
}

// newJournal returns a journal before the first step.
func newJournal(m *mask) *journal { return &journal{mask: m, step: -1, occurrences: map[Point]int{}} }

// begin records a request.
func (j *journal) begin(x *Exchange) {
	point := Point{Verb: string(x.Verb), Resource: x.Resource, Subresource: x.Subresource, Name: x.Name}
	name := x.Name
	if j.mask != nil && x.IsAboutObjects() && x.Verb.IsWrite() {
		value := parseBody(x.contentType, x.Body)
		if name == "" && x.Verb == wire.VerbCreate {
			name = objectName(value)
		}
		point.ChangeHash = j.mask.hash(value, x.Resource)
	}
	if j.mask != nil && name != "" {
		point.Name = j.mask.normalize(name)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	point.Step = j.step
	j.occurrences[point]++
	point.Occurrence = j.occurrences[point]
	record := x.record.fieldsLocked()
	record.Point, record.Namespace, record.Name, record.Began = point, x.Namespace, name, time.Now()
	j.records = append(j.records, x.record)
	if x.isAwaited() {
		j.awaited++
	}
	if !IsBackground(x.Resource) {
		j.lastRequest = record.Began
	}
}

// end records that an exchange is over.
func (j *journal) end(x *Exchange) {
	j.mu.Lock()
	defer j.mu.Unlock()
	record := x.record.fieldsLocked()
	record.Ended = time.Now()
	if x.isAwaited() {
		j.awaited--
		j.lastRequest = record.Ended
	}
}

// setStep sets the step of the next requests, and counts points from 1 again.
func (j *journal) setStep(step int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.step = step
	clear(j.occurrences)
}

// requests returns the records so far, in the order in which the requests came.
func (j *journal) requests() []RequestRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]RequestRecord, len(j.records))
	for i, record := range j.records {
		all[i] = *record.fieldsLocked()
	}
	return all
}

// journalRecord is the record of one request in a journal. The mutex of the journal guards the fields.
type journalRecord struct {
	journal *journal
	fields  RequestRecord
}

func newJournalRecord(j *journal, r RequestRecord) *journalRecord { return &journalRecord{j, r} }

// change changes the fields.
func (r *journalRecord) change(change func(*RequestRecord)) {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	change(r.fieldsLocked())
}

// current returns a copy of the fields.
func (r *journalRecord) current() RequestRecord {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return *r.fieldsLocked()
}

func (r *journalRecord) fieldsLocked() *RequestRecord { return &r.fields }

// Activity is the activity of a proxy at one moment. Requests and events of Leases and Events do not count.
type Activity struct {
	// InFlight counts the requests that have not ended. Watches, requests for logs and connections of other protocols are
	// left out.
	InFlight int
	// LastRequest is when a request began last, or a request of InFlight ended last. The beginning of a watch and of a
	// request for logs is a beginning too.
	LastRequest time.Time
	// LastEvent is when a watch delivered an event last.
	LastEvent time.Time
	// Held counts the events that faults hold.
	Held int
	// StreamsBehind counts the watches with events that the program has not received.
	StreamsBehind int
}

// activity returns the activity of the requests.
func (j *journal) activity() Activity {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Activity{InFlight: j.awaited, LastRequest: j.lastRequest}
}
