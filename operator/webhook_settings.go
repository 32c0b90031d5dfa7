package operator

import (
	"context"
	"log/slog"
	"os"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/metrics"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// The variables by which yare dev has the calls of webhooks sent through a server of its own, which stays while the
// program is built and started anew.
const (
	// webhooksURLVariable is the URL that API servers call.
	webhooksURLVariable = "YARE_WEBHOOKS_URL"
	// webhooksCAVariable is a file with the bundle by which API servers verify that URL.
	webhooksCAVariable = "YARE_WEBHOOKS_CA"
	// webhooksSocketVariable is the Unix socket on which the program takes the calls, without TLS.
	webhooksSocketVariable = "YARE_WEBHOOKS_SOCKET"
)

// webhookSettings are what is known of the webhooks of a program before its client is there.
type webhookSettings struct {
	flags webhookFlags
	// webhooks are all webhooks of the program. conversions are its conversions, or nil.
	webhooks    []*admission.Webhook
	conversions conversionService
	// program and namespace are the name and the namespace of the program. pod is its Pod, or empty.
	program, namespace, pod string
	// watched are the namespaces that the program watches. None means all.
	watched []string
	mode    mode
	// test is nil outside of tests.
	test webhookTest
	log  *slog.Logger
}

// openWebhookService opens the address of the webhooks and converters of parts. It returns unservedWebhooks if parts
// have none, or if the program does not serve them.
func openWebhookService(ctx context.Context, parts []Part, s webhookSettings) (webhookService, error) {
	code, err := webhookCodeIn(parts)
	if err != nil {
		if s.flags.address != "" {
			s.log.Warn("the flag --webhooks has no effect: the program has no part operator.Validate, operator.Default or operator.Convert")
		}
		return unservedWebhooks{}, nil
	}
	s.webhooks = webhooksOf(parts)
	if s.conversions, _, err = conversionsOf(parts); err != nil {
		return nil, err
	}
	switch {
	case s.flags.isOff():
		return unservedWebhooks{}, nil
	case s.flags.address == "" && (!s.mode.isStrict() || s.namespace == ""):
		s.log.Warn("the webhooks of the program are not served: give --webhooks, such as --webhooks :9443, or --webhooks \"\" without this warning")
		return unservedWebhooks{}, nil
	}
	return code.openWebhooks(ctx, s)
}

// webhookRuntime is what a program lends to its webhooks while it runs.
type webhookRuntime struct {
	// unfencedClient does not pass the fence of the leader election, because each replica answers and publishes bundles.
	// fencedClient passes the fence.
	unfencedClient, fencedClient *kube.Client
	// handlerClient is unfencedClient with the handlers of [addRequestHandlers]. The functions of the author read by
	// handlerClient and cache. start puts the two together, because a program without webhooks must not link the reads of
	// the cache.
	handlerClient *kube.Client
	cache         *cache.Cache
	// isLeading reports whether the replica leads. elected is the field Elected of [controller.Runtime].
	isLeading func() bool
	elected   <-chan struct{}
	// fail ends the program with an error.
	fail func(error)
	// registry gets the metrics. isCounting is true if somebody can read them.
	registry   *metrics.Registry
	isCounting bool
	// reconciled are the resources that the controllers reconcile.
	reconciled []wire.Resource
	// areSubscribed reports whether all controllers have subscribed to their streams. It is nil unless isCounting is true.
	areSubscribed func() bool
}

// variable returns the value of an environment variable of yare dev.
func (s *webhookSettings) variable(name string) string {
	if s.mode != developmentMode {
		return ""
	}
	return os.Getenv(name)
}

// newEndpoint returns the endpoint that the flags, the mode and the environment of the program ask for.
func (s *webhookSettings) newEndpoint() webhookEndpoint {
	switch {
	case s.flags.address != "" && s.flags.cert != "":
		return &filesEndpoint{settings: *s}
	case s.flags.address != "":
		return &storeEndpoint{settings: *s}
	case s.variable(webhooksSocketVariable) != "":
		return &socketEndpoint{settings: *s}
	default:
		return &loopbackEndpoint{settings: *s}
	}
}
