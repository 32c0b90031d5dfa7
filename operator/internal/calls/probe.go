package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

const (
	// firstCallTime is how long an API server may take in a test until it calls webhooks that were published.
	firstCallTime = 30 * time.Second
	// ProbeInterval is the time between two probes.
	ProbeInterval = 50 * time.Millisecond
)

// prober allows the calls of probes, and reports them. It passes all other calls on. A test probes before it makes
// objects, because an API server calls a webhook only about a second after its entry was written. A prober is safe for
// concurrent use.
type prober struct {
	next http.Handler
	// seen gets the kind of the configuration of each probe. A kind is dropped if nobody has read the last ones.
	seen chan string
}

// newProber returns a prober that passes calls on to next.
func newProber(next http.Handler) *prober { return &prober{next, make(chan string, 8)} }

// ServeHTTP answers a call.
func (p *prober) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, isProbe := strings.CutPrefix(r.URL.Path, configuration.ProbePath(""))
	if !isProbe {
		p.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview))
	var answer []byte
	if err == nil {
		answer, err = allowingReview(body)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	select {
	case p.seen <- kind:
	default:
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // an API server that is gone repeats nothing
}

// waitForCalls makes dry runs of a ConfigMap of a namespace and a name until the prober has seen the calls. It returns
// an error if that takes more than firstCallTime. If the program may not create ConfigMaps, waitForCalls returns when
// the configurations are published: then the first calls may be missing.
func (p *prober) waitForCalls(
	ctx context.Context, client *kube.Client, kinds []string, ready func() error, namespace, name string,
) error {
	ctx, cancel := context.WithTimeout(ctx, firstCallTime)
	defer cancel()
	missing := make(map[string]bool)
	for _, kind := range kinds {
		missing[kind] = true
	}
	for {
		err := tryConfigMap(ctx, client, namespace, name)
		for isSeen := true; isSeen; {
			select {
			case kind := <-p.seen:
				delete(missing, kind)
			default:
				isSeen = false
			}
		}
		if len(missing) == 0 || kube.IsForbidden(err) && ready() == nil {
			return nil
		}
		select {
		case <-time.After(ProbeInterval):
		case <-ctx.Done():
			return fmt.Errorf("the API server does not call the webhooks of this program %s after their publication: %w",
				firstCallTime, errors.Join(ctx.Err(), ready(), err))
		}
	}
}

// waitForNoCalls waits until the API server no longer calls the prober for a dry run, or ctx ends.
func (p *prober) waitForNoCalls(ctx context.Context, client *kube.Client, namespace, name string) {
	for isCalled := true; isCalled && ctx.Err() == nil; {
		for isSeen := true; isSeen; { // the calls of before
			select {
			case <-p.seen:
			default:
				isSeen = false
			}
		}
		_ = tryConfigMap(ctx, client, namespace, name) // the API server has called when it answers
		select {
		case <-p.seen:
			select {
			case <-time.After(ProbeInterval):
			case <-ctx.Done():
			}
		default:
			isCalled = false
		}
	}
}

// tryConfigMap makes a dry run of a new ConfigMap.
func tryConfigMap(ctx context.Context, client *kube.Client, namespace, name string) error {
	_, err := kube.Create(ctx, client,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, kube.DryRun())
	return err
}
