//go:build yare

package main

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/yare-go/yare/ctrl"
)

// cacheAndClient returns the cache and the client of yare.
func cacheAndClient(config *rest.Config) (cache.NewCacheFunc, client.NewClientFunc, error) {
	bridge, err := ctrl.ForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return bridge.NewCache, bridge.NewClient, nil
}
