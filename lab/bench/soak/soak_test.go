// Package soak runs an operator for an hour with 10,000 objects, while users change the objects at a fixed rate and
// faults happen between the operator and the API server. It samples the memory, the goroutines and the connections of
// the operator's process from outside, checks at the end that all objects are right, and judges whether the samples
// stay flat.
//
//	go -C lab/bench test ./soak -timeout 0 -v -for 1h
//	go -C lab/bench test ./soak -timeout 0 -v -for 2m -objects 1000 -out "$(mktemp -d)"  # a quick look
//
// TestSoak writes results.json and the plots into the folder -out. It needs Linux.
package soak

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/yaretest"
)

var (
	duration  = flag.Duration("for", 0, "how long the objects change and faults happen; at 0 there is no soak")
	objects   = flag.Int("objects", 10_000, "the number of Notes, at least 100")
	rate      = flag.Float64("rate", 20, "the number of changes by users per second")
	every     = flag.Duration("every", 10*time.Second, "the time between two samples; at least six are needed")
	killEvery = flag.Duration("kill-every", 10*time.Minute, "the time between two kills of the API server")
	seed      = flag.Uint64("seed", 1, "the seed of changes and faults")
	out       = flag.String("out", ".", "the folder of the results")
)

// TestSoak fails if an object is wrong at the end, if the operator ends, or if something grows.
func TestSoak(t *testing.T) {
	if *duration == 0 {
		t.Skip("it takes an hour: go -C lab/bench test ./soak -timeout 0 -v -for 1h")
	}
	if *objects < 100 || *rate <= 0 || *every <= 0 || *killEvery <= 0 || *duration < 6**every {
		t.Fatal("there are at least 100 objects, and at least six samples; a rate and a time are positive")
	}
	cluster := yaretest.New(t)
	namespace := cluster.Namespace(t)
	yaretest.Define[workload.Note](t, cluster)
	client := cluster.Client(t).WithFieldManager("soak")
	users := newUsers(client, namespace)
	t.Logf("creating %d Notes", *objects)
	if err := users.createAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	faultyProxy := newFaultyProxy(t, cluster.Config())
	program := startProgram(t, faultyProxy.session, namespace)
	t.Log("waiting until all Notes are reconciled")
	if err := waitUntilRight(t.Context(), client, namespace, program, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	results := newResults(t.Context())
	disturb(t, cluster, users, faultyProxy, program, results)
	t.Log("no changes and no faults any more: waiting until all Notes are right")
	began := time.Now()
	if err := waitUntilRight(t.Context(), client, namespace, program, 5*time.Minute); err != nil {
		results.Wrong = err.Error()
	}
	results.SecondsUntilRight = time.Since(began).Seconds()
	results.Changes, results.Faults = users.counts.all(), faultyProxy.counts.all()
	results.judge()
	for _, each := range results.Trends {
		t.Log(each)
	}
	if err := results.write(*out); err != nil {
		t.Error(err)
	}
	if err := results.err(); err != nil {
		t.Error(err)
	}
}

// disturb lets users change objects and faults happen for the duration of the soak. Meanwhile it samples the program,
// and kills the API server. It ends earlier with the program.
func disturb(t *testing.T, cluster *yaretest.Cluster, users *users, faultyProxy *faultyProxy, program *program, results *results) {
	ctx, cancel := context.WithTimeout(t.Context(), *duration)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	t.Logf("changes and faults for %s", *duration)
	users.change(ctx, &working)
	working.Go(func() { faultyProxy.injectFaults(ctx) })
	began := time.Now()
	samples, kills := time.NewTicker(*every), time.NewTicker(*killEvery)
	defer samples.Stop()
	defer kills.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-program.done:
			return
		case <-kills.C:
			// The soak must not end while the API server is down.
			if time.Since(began) < *duration-*killEvery/10 {
				cluster.Kill(t, "kube-apiserver")
				faultyProxy.counts.add("kill of the API server")
				cluster.StartComponent(t, "kube-apiserver")
			}
		case <-samples.C:
			s, err := program.sample(ctx)
			if err != nil {
				t.Logf("no sample: %v", err)
				continue
			}
			s.Second = time.Since(began).Seconds()
			results.Samples = append(results.Samples, s)
			if len(results.Samples)%30 == 0 {
				t.Logf("%s: %s", time.Since(began).Round(time.Second), s)
			}
		}
	}
}
