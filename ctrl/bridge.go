package ctrl

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/kube/wire"
)

// Bridge gives managers of controller-runtime the cache and the client of yare. Its methods can be used concurrently.
type Bridge struct {
	client *kube.Client
	cache  *cache.Cache
	// reader reads from the cache, and records what is written.
	reader wire.Handler
}

// ForConfig returns a Bridge to the server of config. Throttling, warning handlers and serialization of config are left
// out: see [clientgo.ConfigFrom].
func ForConfig(config *rest.Config) (*Bridge, error) {
	own, err := clientgo.ConfigFrom(config)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClient(own)
	if err != nil {
		return nil, err
	}
	log := logf.Log.WithName("yare")
	onError := cache.OnError(func(s wire.Stream, err error) { log.Error(err, "a stream of the cache failed", "stream", s.String()) })
	return newBridge(client, cache.New(client, onError)), nil
}

// forRuntime returns a Bridge by the client and the cache of a program of yare. Its reads are as new as the writes of the
// other parts of the program.
func forRuntime(rt *controller.Runtime) *Bridge { return newBridge(rt.Client, rt.Cache) }

func newBridge(client *kube.Client, c *cache.Cache) *Bridge {
	return &Bridge{client: client, cache: c, reader: c.Handler(client)}
}

// config returns a configuration whose requests are those of yare's client: with its retries, its limits, and the checks
// of its program. A client of it reads from the server.
func (b *Bridge) config() *rest.Config {
	return &rest.Config{
		Host: "http://yare", Transport: &transport{handler: b.reader},
		// The pipeline transports JSON only, and limits requests itself.
		ContentConfig: rest.ContentConfig{ContentType: wire.ContentJSON, AcceptContentTypes: wire.ContentJSON}, QPS: -1,
	}
}

// NewClient returns a client for a manager. It has the form of [client.NewClientFunc]. It writes by yare, and reads from
// the cache what options say.
func (b *Bridge) NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	if config == nil {
		return nil, errors.New("the configuration is nil")
	}
	own := b.config()
	own.UserAgent, own.WarningHandler, own.WarningHandlerWithContext = config.UserAgent, config.WarningHandler, config.WarningHandlerWithContext
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	// The client of HTTP in options goes around yare.
	options.HTTPClient = &http.Client{Transport: own.Transport}
	return client.New(own, options)
}

// NewCache returns a cache for a manager. It has the form of ctrlcache.NewCacheFunc.
func (b *Bridge) NewCache(config *rest.Config, options ctrlcache.Options) (ctrlcache.Cache, error) {
	return newObjectCache(b, config, options)
}
