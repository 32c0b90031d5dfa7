// Command load makes dry runs of CronJobs until its standard input ends. Half of them are valid, and the API server
// asks the webhooks of the operator about each. The command fails if a valid one is refused, an invalid one is
// accepted, or a webhook did not answer. It prints one line with its counts.
//
//	go run .ci/realnode/load.go -callers 8 <fifo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// results counts the calls. Its methods may be called concurrently.
type results struct {
	mu sync.Mutex
	// valid and invalid count the calls that ended as they must. failed counts those with another answer.
	valid, invalid, failed int
	// unanswered counts the calls that had no answer of the API server.
	unanswered int
	// examples are the first errors.
	examples []string
}

// record records how a call ended.
func (r *results) record(isValid bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, hasAnswer := kube.AsError(err)
	switch {
	case isValid && err == nil:
		r.valid++
		return
	case !isValid && kube.IsInvalid(err) && strings.Contains(err.Error(), "spec.schedule"):
		r.invalid++
		return
	case err == nil:
		err = errors.New("an invalid CronJob was accepted")
		r.failed++
	case hasAnswer && e.Code != 0 && e.Code != http.StatusTooManyRequests:
		r.failed++
	default:
		r.unanswered++
	}
	if len(r.examples) < 10 {
		r.examples = append(r.examples, time.Now().Format(time.TimeOnly)+" "+err.Error())
	}
}

func main() {
	callers := flag.Int("callers", 4, "how many callers there are")
	pause := flag.Duration("pause", 20*time.Millisecond,
		"the pause of a caller between two calls; every second caller pauses 50 times as long")
	flag.Parse()
	if err := run(*callers, *pause); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(callers int, pause time.Duration) error {
	config, _, err := kube.ConfigSource{}.Load()
	if err != nil {
		return err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var r results
	var running sync.WaitGroup
	for i := range callers {
		wait := pause
		if i%2 == 1 {
			wait *= 50
		}
		running.Go(func() { call(ctx, client, i, wait, &r) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	running.Wait()
	fmt.Printf("%d valid, %d refused, %d failed, %d without an answer of the API server\n",
		r.valid, r.invalid, r.failed, r.unanswered)
	for _, text := range r.examples {
		fmt.Println(text)
	}
	switch {
	case err != nil:
		return err
	case r.failed > 0 || r.valid == 0 || r.invalid == 0:
		return errors.New("calls have failed, or there were none")
	}
	return nil
}

// call makes calls until ctx ends.
func call(ctx context.Context, client *kube.Client, caller int, pause time.Duration, r *results) {
	resource := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "batch.tutorial.example.com", Version: "v1", Kind: "CronJob"},
		Plural:           "cronjobs",
	}
	api := kube.Dynamic(client, resource, "default")
	for n := 0; ctx.Err() == nil; n++ {
		isValid, schedule := n%2 == 0, "* * * * *"
		if !isValid {
			schedule = "61 * * * *"
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("load-%d-%d", caller, n)},
			"spec": map[string]any{
				"schedule": schedule,
				"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{
					"spec": map[string]any{"containers": []any{map[string]any{"name": "work", "image": "example.com/work"}}},
				}}},
			},
		}}
		_, err := api.Create(context.WithoutCancel(ctx), object, kube.DryRun())
		r.record(isValid, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
