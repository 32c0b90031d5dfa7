package layout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// pollInterval is short: asking a server that is still starting costs it little.
const pollInterval = 25 * time.Millisecond

// prober checks the health of a plane's servers.
type prober struct {
	client *http.Client
}

func newProber(c credentials) (*prober, error) {
	client, err := rest.HTTPClientFor(&rest.Config{Timeout: 10 * time.Second, TLSClientConfig: rest.TLSClientConfig{
		CAData: c.ca, CertData: c.pair.Certificate, KeyData: c.pair.Key,
	}})
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	return &prober{client}, nil
}

// waitUntil repeats a check until it succeeds or the context ends. The error then includes the
// last error of the check.
func waitUntil(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// answersOK returns a check that succeeds when url answers with status 200.
func (p *prober) answersOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.get(ctx, url)
		return err
	}
}

// nodesReady returns a check that succeeds when this number of nodes is Ready and accepts Pods.
func (p *prober) nodesReady(url string, want int) func(context.Context) error {
	return func(ctx context.Context) error {
		var list corev1.NodeList
		body, err := p.get(ctx, url)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return fmt.Errorf("read the nodes: %w", err)
		}
		ready := 0
		for _, node := range list.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
					ready++
				}
			}
		}
		if ready < want {
			return fmt.Errorf("%d of %d nodes are ready", ready, want)
		}
		return nil
	}
}

func (p *prober) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err // the error names method and URL
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return body, nil
}
