package engine

import (
	"context"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/kube"
)

// GrantAccount gives an account in the namespace of a run its permissions, and returns the
// configuration of the program's requests.
func GrantAccount(ctx context.Context, admin *kube.Config, account *Account, namespace string) (*kube.Config, error) {
	client, err := kube.NewClient(admin)
	if err != nil {
		return nil, err
	}
	p := &permissions{client, admin, account}
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	return p.target(), p.grant(ctx, namespace)
}

// Namespaces are the namespaces of an exploration.
type Namespaces struct {
	namespaces
	recorder *history.Recorder
}

// NewNamespaces returns the namespaces of an exploration that has made no run.
func NewNamespaces(ctx context.Context, admin *kube.Config) (*Namespaces, error) {
	client, err := kube.NewClient(admin)
	if err != nil {
		return nil, err
	}
	resources, err := history.Resources(ctx, client)
	if err != nil {
		return nil, err
	}
	recorder, err := history.NewRecorder(ctx, admin, resources...)
	return &Namespaces{namespaces{cluster: cluster{client: client, resources: resources}}, recorder}, err
}

// Begin returns a namespace with a recording, as a run gets it.
func (n *Namespaces) Begin(ctx context.Context) (string, *history.Recording, error) {
	name, isNew := n.acquire()
	recording := n.recorder.Record(name)
	if !isNew {
		return name, recording, nil
	}
	return name, recording, n.create(ctx, name)
}

// End releases a namespace as a run does, and waits until the namespace is empty or removed.
func (n *Namespaces) End(name string, recording *history.Recording) {
	n.release(name, recording, true)
	n.emptying.Wait()
}

// Close removes the namespaces, and ends the recorder.
func (n *Namespaces) Close() error {
	defer n.recorder.Close()
	return n.close()
}
