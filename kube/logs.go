package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// LogOptions selects the lines that [API.Logs] reads. The zero value means all lines of the only
// container.
type LogOptions struct {
	// Container names the container. It is required if the Pod has several.
	Container string
	// Follow goes on with new lines until the container ends.
	Follow bool
	// Previous reads the log of the terminated instance before the current one.
	Previous bool
	// Since is the age of the oldest line, in whole seconds. Zero means any age.
	Since time.Duration
	// Tail is the number of lines from the end of the log with which to begin. Zero means all lines.
	Tail int
	// Timestamps begins each line with its time (RFC 3339).
	Timestamps bool
}

// openLog opens the log of a container of a Pod. See [API.Logs].
func openLog(ctx context.Context, h wire.Handler, t target, name string, options LogOptions) (io.ReadCloser, error) {
	if err := cmp.Or(t.requireName(wire.VerbGet, name), t.rejectSubresource(wire.VerbGet, name)); err != nil {
		return nil, err
	}
	if t.resource.Group != "" || t.resource.Plural != "pods" {
		return nil, fmt.Errorf("read the log of %s %s: only Pods have logs", t.resource, ident.Quoted(t.namespace, name))
	}
	if options.Since < 0 || options.Tail < 0 {
		return nil, fmt.Errorf("read the log of %s %s: Since and Tail must not be negative: 0 means all lines",
			t.resource, ident.Quoted(t.namespace, name))
	}
	t.subresource, t.representation = "log", wire.Full
	r := t.request(wire.VerbGet, name)
	r.Query, r.WantsBodyReader = options.query(), true
	response, err := h.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if response.BodyReader == nil {
		return nil, fmt.Errorf("read the log of %s %s: the handler answered without a stream",
			t.resource, ident.Quoted(t.namespace, name))
	}
	return response.BodyReader, nil
}

func (o LogOptions) query() url.Values {
	q := url.Values{}
	if o.Container != "" {
		q.Set("container", o.Container)
	}
	for name, isSet := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if isSet {
			q.Set(name, "true")
		}
	}
	if o.Since > 0 {
		q.Set("sinceSeconds", strconv.FormatInt(int64((o.Since+time.Second-1)/time.Second), 10))
	}
	if o.Tail > 0 {
		q.Set("tailLines", strconv.Itoa(o.Tail))
	}
	return q
}
