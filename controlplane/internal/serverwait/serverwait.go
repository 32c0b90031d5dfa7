// Package serverwait lets a component begin its work as soon as the API server can be used. All components start at the
// same time. A stock component that finds no server tries once more only after a second or later.
package serverwait

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// interval is short: a request to a port nobody listens on costs next to nothing.
const interval = 20 * time.Millisecond

// probe is the path that is requested. It is the namespace that the server makes last at its first start. A server that
// has made this namespace can serve a component. It calls itself healthy a second later, when it has made its roles.
// Components do not need these roles.
const probe = "/api/v1/namespaces/kube-node-lease"

// WaitUsable waits until the API server can be used by a component, or the context ends.
func WaitUsable(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	err = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		return isUsable(ctx, client, config.Host), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API server at %s: %w", config.Host, err)
	}
	return nil
}

func isUsable(ctx context.Context, client *http.Client, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+probe, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
