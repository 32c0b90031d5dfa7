package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Subresource returns the view of a subresource that reads and writes whole objects, such as
// ephemeralcontainers and resize of Pods, or approval of CertificateSigningRequests. The server
// takes only the part of a written object that belongs to the subresource. The view reads, replaces
// and patches. See [API.Status] for the status, and [CreateSubresource] for subresources with types
// of their own.
func (a API[T]) Subresource(name string) API[T] {
	if name == "status" {
		return a.Status()
	}
	if a.err == nil {
		a.err = checkSubresource(name)
	}
	a.subresource = name
	return a
}

// CreateSubresource creates a subresource of the object of that name, and returns the answer, which
// is an Answer. The subresource determines the kinds of body and answer:
//
//	token, err := kube.CreateSubresource[authenticationv1.TokenRequest](ctx, accounts, "robot", "token",
//		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}})
//	_, err = kube.CreateSubresource[metav1.Status](ctx, pods, "web-0", "eviction", &policyv1.Eviction{})
//
// A body without a name and a namespace is sent with the object's. A nil body is sent as no
// body. An eviction that a disruption budget forbids for now is an error that
// [IsTooManyRequests] reports. Such an eviction is not repeated.
func CreateSubresource[Answer, T any](ctx context.Context, a API[T], name, subresource string, body any, options ...WriteOption) (*Answer, error) {
	answer := new(Answer)
	if err := a.createSubresource(ctx, name, subresource, body, answer, options); err != nil {
		return nil, err
	}
	return answer, nil
}

func (a resourceView) createSubresource(ctx context.Context, name, subresource string, body, answer any, options []WriteOption) error {
	if err := cmp.Or(a.requireName(VerbCreate, name), a.rejectSubresource(VerbCreate, name)); err != nil {
		return err
	}
	if err := checkSubresource(subresource); err != nil {
		return fmt.Errorf("create %s of %s %s: %w", subresource, a.resource, quoted(a.namespace, name), err)
	}
	a.subresource = subresource
	r := a.request(VerbCreate, name)
	r.Query = a.writeQuery(options)
	if body != nil {
		data, err := Marshal(body)
		if _, ok := body.(Object); ok && err == nil {
			data, err = withIdentity(data, a.namespace, name)
		}
		if err != nil {
			return fmt.Errorf("encode the %s of %s %s: %w", subresource, a.resource, quoted(a.namespace, name), err)
		}
		r.Body = data
	}
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return err
	}
	if err := unmarshalNew(response.Body, answer); err != nil {
		return &DecodeError{Ref: r.Ref(), Err: fmt.Errorf("the answer to its %s: %w", subresource, err)}
	}
	return nil
}

func checkSubresource(name string) error {
	if name == "" {
		return errors.New("the subresource is empty: name one, such as eviction")
	}
	return checkSegment("subresource", name)
}

// withIdentity returns the JSON of an object with a namespace and a name where it has none.
func withIdentity(object []byte, namespace, name string) ([]byte, error) {
	members := make(map[string]jsontext.Value)
	if err := Unmarshal(object, &members); err != nil {
		return nil, err
	}
	metadata := make(map[string]jsontext.Value)
	if len(members["metadata"]) > 0 {
		if err := Unmarshal(members["metadata"], &metadata); err != nil {
			return nil, err
		}
	}
	for member, text := range map[string]string{"namespace": namespace, "name": name} {
		if len(metadata[member]) == 0 && text != "" {
			metadata[member] = appendString(nil, text)
		}
	}
	var err error
	if members["metadata"], err = Marshal(metadata); err != nil {
		return nil, err
	}
	return Marshal(members)
}

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

// Logs opens the log of a container of a Pod. The caller closes the stream. The stream ends with the
// log, or when ctx ends. A stream that follows can be silent for any time.
func (a API[T]) Logs(ctx context.Context, name string, options LogOptions) (io.ReadCloser, error) {
	return a.logs(ctx, name, options)
}

func (a resourceView) logs(ctx context.Context, name string, options LogOptions) (io.ReadCloser, error) {
	if err := cmp.Or(a.requireName(VerbGet, name), a.rejectSubresource(VerbGet, name)); err != nil {
		return nil, err
	}
	if a.resource.Group != "" || a.resource.Plural != "pods" {
		return nil, fmt.Errorf("read the log of %s %s: only Pods have logs", a.resource, quoted(a.namespace, name))
	}
	if options.Since < 0 || options.Tail < 0 {
		return nil, fmt.Errorf("read the log of %s %s: Since and Tail must not be negative: 0 means all lines", a.resource, quoted(a.namespace, name))
	}
	a.subresource, a.representation = "log", Full
	r := a.request(VerbGet, name)
	r.Query, r.Streams = options.query(), true
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if response.Stream == nil {
		return nil, fmt.Errorf("read the log of %s %s: the handler answered without a stream", a.resource, quoted(a.namespace, name))
	}
	return response.Stream, nil
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
