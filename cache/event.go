package cache

// Event is one step of a stream, told to a [Subscriber].
type Event struct {
	Type EventType
	// Old is what the store had before: of a Modified and of a Deleted.
	Old Record
	// New is what it has now: of an Added and of a Modified.
	New Record
	// Initial is true for what comes before Synced: what was there already.
	Initial bool
	// Echo is true when the change is known to be one that was written through
	// [Cache.Handler]. It is a hint: the stream may show a change before the answer of the
	// write is there, and then it is false.
	Echo bool

	old, new *entry
}

// EventType says what happened.
type EventType int

const (
	// Added is an object that the subscriber had not been told of.
	Added EventType = iota + 1
	// Modified is another version of the same object. The same name under another uid is a
	// Deleted and an Added.
	Modified
	// Deleted is an object that is there no more, or no more matches the stream.
	Deleted
	// Synced comes once: all that is there has been told. It is about no object.
	Synced
)

// String is the name of the type.
func (t EventType) String() string {
	switch t {
	case Added:
		return "Added"
	case Modified:
		return "Modified"
	case Deleted:
		return "Deleted"
	case Synced:
		return "Synced"
	default:
		return "EventType(0)"
	}
}

// Record is what the event is about: New, or Old if there is no New. It is the zero
// Record for Synced.
func (e Event) Record() Record {
	if e.Type == Deleted {
		return e.Old
	}
	return e.New
}

// OldObject is Old with its content: of a Deleted, the last that the store had.
func (e Event) OldObject() Object { return Object{Record: e.Old, entry: e.old} }

// NewObject is New with its content.
func (e Event) NewObject() Object { return Object{Record: e.New, entry: e.new} }

// Subscriber is told the events of one stream: one at a time, in the order of the stream,
// and always in a goroutine of [Cache]. It must not block for long, because the stream
// and its other subscribers wait meanwhile. It can read the stores, which stand at the
// event; it can Open other streams, and the same one; it must not Close a [Subscription].
type Subscriber func(Event)
