package lease

import (
	"context"
	"fmt"
	"net/url"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// requests reads and writes one Lease.
type requests struct {
	client          *kube.Client
	namespace, name string
}

// get returns the Lease as the server has it.
func (q requests) get(ctx context.Context) (*Lease, error) {
	return q.send(ctx, &wire.Request{Verb: wire.VerbGet, Name: q.name, Live: true})
}

// create creates l, and returns the Lease that the server stored.
func (q requests) create(ctx context.Context, l *Lease) (*Lease, error) {
	return q.write(ctx, &wire.Request{Verb: wire.VerbCreate}, l)
}

// replace writes l in place of the stored Lease, and returns the Lease that the server stored. It fails with a conflict
// unless the stored Lease still has the resource version of l.
func (q requests) replace(ctx context.Context, l *Lease) (*Lease, error) {
	return q.write(ctx, &wire.Request{
		Verb: wire.VerbUpdate, Name: q.name,
		Preconditions: wire.Preconditions{UID: l.Metadata.UID, ResourceVersion: l.Metadata.ResourceVersion},
	}, l)
}

// write sends r with l as its body.
func (q requests) write(ctx context.Context, r *wire.Request, l *Lease) (_ *Lease, err error) {
	sent := *l
	sent.APIVersion, sent.Kind = "coordination.k8s.io/v1", "Lease"
	if r.Body, err = kube.Marshal(&sent); err != nil {
		return nil, fmt.Errorf("encode the lease: %w", err)
	}
	r.Query = url.Values{"fieldManager": {q.client.FieldManager()}}
	return q.send(ctx, r)
}

// send sends r, and returns the Lease of the answer.
func (q requests) send(ctx context.Context, r *wire.Request) (*Lease, error) {
	r.Resource, r.Namespace = Resource(), q.namespace
	response, err := q.client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return decode(response.Body)
}

// stream returns the stream of the Lease.
func (q requests) stream() wire.Stream {
	s := StreamNamed(q.name)
	s.Namespace = q.namespace
	return s
}

// StreamNamed returns the stream of the Leases of that name.
func StreamNamed(name string) wire.Stream {
	return wire.Stream{Resource: Resource(), FieldSelector: "metadata.name=" + name}
}

// StreamOfKinds returns the stream of the Leases with that hash of kinds: see [Config.KindsHash].
func StreamOfKinds(hash string) wire.Stream {
	return wire.Stream{Resource: Resource(), LabelSelector: labelKinds + "=" + hash}
}

// decode returns the Lease that data encodes.
func decode(data []byte) (*Lease, error) {
	l := new(Lease)
	if err := kube.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("decode the lease: %w", err)
	}
	return l, nil
}

// List returns the Leases of a stream in the namespaces of c.
func List(ctx context.Context, c *kube.Client, s wire.Stream) (all []*Lease, err error) {
	namespaces := c.Namespaces()
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, s.Namespace = range namespaces {
		for page, err := range s.Pages(ctx, c) {
			if err != nil {
				return nil, err
			}
			for _, item := range page.Items {
				l, err := decode(item)
				if err != nil {
					return nil, err
				}
				all = append(all, l)
			}
		}
	}
	return all, nil
}
