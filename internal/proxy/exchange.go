package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// Exchange is a request of a program and its answer. Its fields do not change.
type Exchange struct {
	RequestInfo
	Session *Session
	// Path, Query and Body are those of the program's request.
	Path  string
	Query url.Values
	Body  []byte

	contentType string
	// isOnlyOfMetadata is true if the program asks for the metadata of objects.
	isOnlyOfMetadata bool
	record           *journalRecord
}

func newExchange(session *Session, j *journal, r *http.Request, body []byte) *Exchange {
	return &Exchange{
		RequestInfo: ParseRequestInfo(r), Session: session, Path: r.URL.Path, Query: r.URL.Query(), Body: body,
		contentType:      r.Header.Get("Content-Type"),
		isOnlyOfMetadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
		record: newJournalRecord(j,
			RequestRecord{Session: session.Name(), Path: r.URL.Path, UserAgent: r.UserAgent()}),
	}
}

// Record changes the record of the request in the journal.
func (x *Exchange) Record(change func(*RequestRecord)) { x.record.change(change) }

// Recorded returns the record of the request.
func (x *Exchange) Recorded() RequestRecord { return x.record.current() }

// IsStreamingList reports whether the request is a watch that begins with all objects.
func (x *Exchange) IsStreamingList() bool { return x.Query.Get("sendInitialEvents") == "true" }

// Selection identifies the objects of a list or a watch of a session.
type Selection struct {
	session          *Session
	path             string
	labels, fields   string
	isOnlyOfMetadata bool
}

// Selection returns the objects that the request selects.
func (x *Exchange) Selection() Selection {
	return Selection{x.Session, x.Path, x.Query.Get("labelSelector"), x.Query.Get("fieldSelector"), x.isOnlyOfMetadata}
}
