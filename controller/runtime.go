package controller

import (
	"log/slog"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// Runtime is what the parts of one program share.
type Runtime struct {
	// Client reaches the server, without any cache.
	Client *kube.Client
	// Cache holds the streams of all parts.
	Cache *cache.Cache
	// Log receives results and errors.
	Log *slog.Logger
	// Observer receives the figures and results of the controllers. It may be nil.
	Observer Observer
}
