// Package serverwait lets a component begin its work at the moment the API server can be
// used. All components start at the same time; the stock ones look again after a second
// or more when they find no server.
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

// probe is the path that is requested: the namespace that the server makes last at its first start. The
// server needs for it all that a component needs. The server calls itself healthy a second later, when it has
// made its roles, which components do not need.
const probe = "/api/v1/namespaces/kube-node-lease"

// Usable waits until the API server can be used by a component, or the context ends.
func Usable(ctx context.Context, config *rest.Config) error {
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
