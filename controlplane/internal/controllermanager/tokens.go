package controllermanager

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// tokens fills Secrets of type kubernetes.io/service-account-token. The stock command
// passes this controller its credentials in a way that is not exported, so it is made
// here from the same parts.
type tokens struct {
	*serviceaccountcontroller.TokensController
	workers int
}

func newTokensController(ctx context.Context, cc app.ControllerContext) (app.Controller, error) {
	options := cc.ComponentConfig.SAController
	key, err := keyutil.PrivateKeyFromFile(options.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the service account key: %w", err)
	}
	rootCA, err := os.ReadFile(options.RootCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the root CA: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("make a token generator: %w", err)
	}
	client, err := cc.NewClient("tokens-controller")
	if err != nil {
		return nil, err
	}
	controller, err := serviceaccountcontroller.NewTokensController(
		klog.FromContext(ctx),
		cc.InformerFactory.Core().V1().ServiceAccounts(),
		cc.InformerFactory.Core().V1().Secrets(),
		client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA},
	)
	if err != nil {
		return nil, err
	}
	return &tokens{TokensController: controller, workers: int(options.ConcurrentSATokenSyncs)}, nil
}

// Name implements app.Controller.
func (*tokens) Name() string { return names.ServiceAccountTokenController }

// Run implements app.Controller.
func (t *tokens) Run(ctx context.Context) { t.TokensController.Run(ctx, t.workers) }
