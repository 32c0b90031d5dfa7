package explore

import (
	"context"

	"github.com/yare-go/yare/kube"
)

// GrantAccount gives an account in the namespace of a run its permissions, and returns the
// configuration of the program's requests.
func GrantAccount(ctx context.Context, admin *kube.Config, account *Account, namespace string) (*kube.Config, error) {
	client, err := kube.NewClient(admin)
	if err != nil {
		return nil, err
	}
	e := &explorer{operator: Binary{Account: account}, options: Options{Config: admin}, client: client}
	if err := e.checkAccount(ctx); err != nil {
		return nil, err
	}
	return e.target(), e.grant(ctx, namespace)
}
