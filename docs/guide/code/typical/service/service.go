// Package service is the client of a service outside of the cluster, as its makers would write the client.
package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Client is a client of the service.
type Client struct{ URL string }

// Ensure creates what path names, unless it exists.
func (c Client) Ensure(ctx context.Context, password, path string) error {
	return c.send(ctx, http.MethodPut, password, path)
}

// Remove deletes what path names. It may be deleted already.
func (c Client) Remove(ctx context.Context, password, path string) error {
	return c.send(ctx, http.MethodDelete, password, path)
}

func (c Client) send(ctx context.Context, method, password, path string) error {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+"/"+path, nil)
	if err != nil {
		return err
	}
	request.SetBasicAuth("operator", password)
	response, err := http.DefaultClient.Do(request)
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("the service does not answer: %w", failed.Err) // without the local port, which is new each time
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 && (method != http.MethodDelete || response.StatusCode != http.StatusNotFound) {
		return fmt.Errorf("the service answers %s", response.Status)
	}
	return nil
}
