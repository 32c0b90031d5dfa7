package cache

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// termPageTimeout is how long a page of a term list may take. Afterwards the list is given up.
	termPageTimeout = 5 * time.Second
	// termPageItems is how many objects a page of a term list asks for, unless pages are larger than termPageBytes. It is
	// minTermPageItems at least.
	termPageItems, minTermPageItems, termPageBytes = 1000, 10, 16 << 20
)

// termList finds the objects of a store that show all writes of former leaders although the stream is behind the term:
// see [Subscription.IsBehindTerm]. It lists the metadata of the objects once. The list begins in the term, so an object
// that the store has in the version of the list shows all these writes. The zero value is ready for use. All methods
// can be used concurrently.
//
// An example. The version of the term is 41, and the stream has reached version 35. The store has the object a at
// version 30, and b at 33. The list has a at 30, and b at 38. So a can be read from the store, and b has to be read
// from the server.
//
// The first object is read from the server without a list. So the first reconcile waits for no list, and a kind with
// one object is not listed. The readers of the other objects wait until the list has shown their object. If the list
// fails, each object is read from the server.
type termList struct {
	mu    sync.Mutex
	state termListState
	// listed holds the versions that the list has shown so far. It is nil once the stream has reached the term.
	listed map[listedVersion]struct{}
	// pageAdded is closed when more versions are in listed, or the list has ended. It is nil before the list.
	pageAdded chan struct{}
}

// listedVersion is one version of an object, as a list shows it. Unlike [ident.Version] it is a key of maps.
type listedVersion struct {
	uid             types.UID
	resourceVersion string
}

// termListState is the state of a term list. The states follow each other in this order. If the reader that runs the
// list ends before the list, the list is due again.
type termListState int

const (
	// notNeeded is the state before the first read.
	notNeeded termListState = iota
	// due is the state before the second read, which runs the list.
	due
	// running is the state until the end of the list.
	running
	// ended is the state after the list, or after its failure.
	ended
)

// confirm returns whether the list has shown v. If shouldRun is true, the caller has to call run. If the list may still
// show v, confirm returns a channel that is closed when the caller should ask again.
func (l *termList) confirm(v listedVersion) (isListed, shouldRun bool, pageAdded <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, isListed = l.listed[v]
	switch l.state {
	case notNeeded:
		l.state = due
	case due:
		l.state, shouldRun = running, true
		l.listed, l.pageAdded = make(map[listedVersion]struct{}), make(chan struct{})
	case running:
		pageAdded = l.pageAdded
	case ended:
	}
	return isListed, shouldRun, pageAdded
}

// run lists the stream s, until ctx ends or isBehind returns false.
func (l *termList) run(ctx context.Context, h wire.Handler, s wire.Stream, isBehind func() bool) {
	defer func() { l.end(ctx.Err() == nil) }()
	listCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	overdue := time.AfterFunc(termPageTimeout, cancel)
	defer overdue.Stop()
	s.Representation = wire.MetadataOnly
	var versions []listedVersion // a buffer
	for next, limit := "", termPageItems; ; {
		r := s.Request(wire.VerbList, "limit", strconv.Itoa(limit), "continue", next)
		// Both save processor time.
		r.Header, r.AcceptsProtobuf = http.Header{"Accept-Encoding": {"identity"}}, true
		response, err := h.Do(listCtx, r)
		if err != nil {
			return
		}
		if versions, next, err = appendVersions(versions[:0], response.Body); err != nil {
			return
		}
		if !l.add(versions, isBehind) || next == "" {
			return
		}
		overdue.Reset(termPageTimeout)
		if len(response.Body) > termPageBytes {
			limit = max(limit/2, minTermPageItems)
		}
	}
}

// appendVersions appends the versions of the objects of a page of a term list. It returns the text that continues the
// list, or an empty text.
func appendVersions(versions []listedVersion, page []byte) (_ []listedVersion, next string, err error) {
	if envelope, isProtobuf := bytes.CutPrefix(page, []byte(protobufMagic)); isProtobuf {
		return appendProtobufVersions(versions, envelope)
	}
	var list metav1.PartialObjectMetadataList
	if err := kube.Unmarshal(page, &list); err != nil {
		return versions, "", err
	}
	for i := range list.Items {
		versions = append(versions, listedVersion{list.Items[i].UID, list.Items[i].ResourceVersion})
	}
	return versions, list.Continue, nil
}

// protobufMagic is the text at the beginning of each answer in protobuf.
const protobufMagic = "k8s\x00"

// appendProtobufVersions returns what appendVersions returns. envelope is a page in protobuf, without protobufMagic. A
// page has a thousand objects, so all other fields are skipped. The numbers of the fields are those of generated.proto
// in k8s.io/apimachinery.
func appendProtobufVersions(versions []listedVersion, envelope []byte) (_ []listedVersion, next string, err error) {
	const raw = 2 // of an Unknown, around the list
	const listMetadata, item, continueText = 1, 2, 3
	const objectMetadata, uid, resourceVersion = 1, 5, 6
	err = rangeProtobuf(envelope, raw, func(list []byte) error {
		return errors.Join(
			rangeProtobuf(list, listMetadata, func(metadata []byte) error {
				return rangeProtobuf(metadata, continueText, func(text []byte) error {
					next = string(text)
					return nil
				})
			}),
			rangeProtobuf(list, item, func(object []byte) error {
				return rangeProtobuf(object, objectMetadata, func(metadata []byte) error {
					var v listedVersion
					err := errors.Join(
						rangeProtobuf(metadata, uid, func(text []byte) error { v.uid = types.UID(text); return nil }),
						rangeProtobuf(metadata, resourceVersion,
							func(text []byte) error { v.resourceVersion = string(text); return nil }),
					)
					versions = append(versions, v)
					return err
				})
			}),
		)
	})
	return versions, next, err
}

// rangeProtobuf calls f with the bytes of each field of a message that has the number. The fields are texts or
// messages.
func rangeProtobuf(message []byte, number protowire.Number, f func([]byte) error) error {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if n == number && kind == protowire.BytesType {
			_, _, tagSize := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[tagSize:])
			if err := f(value); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}

// add adds versions, if the stream is still behind the term. It returns whether it did so.
func (l *termList) add(versions []listedVersion, isBehind func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed == nil || !isBehind() {
		l.listed = nil
		return false
	}
	for _, v := range versions {
		l.listed[v] = struct{}{}
	}
	close(l.pageAdded)
	l.pageAdded = make(chan struct{})
	return true
}

// end records the end of run. isFinal is false if another reader should run the list again.
func (l *termList) end(isFinal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = due
	if isFinal {
		l.state = ended
	}
	close(l.pageAdded)
}

// forget frees the memory of the list, because the stream has reached the term.
func (l *termList) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed = nil
}
