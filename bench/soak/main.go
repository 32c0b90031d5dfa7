// Command soak runs an operator for an hour with 10,000 objects, while users change the objects at a
// fixed rate and faults happen between the operator and the API server. It samples the memory, the
// goroutines and the connections of the operator's process from outside, checks at the end that all
// objects are right, and judges whether the samples stay flat.
//
//	go -C bench run ./soak                                        # an hour
//	go -C bench run ./soak -for 2m -objects 1000 -out "$(mktemp -d)"  # a quick look
//
// It writes results.json and the plots into the folder -out. The exit status is 1 if an object is
// wrong, if the operator has ended, or if something grows. It needs Linux and Go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
	"github.com/yare-go/yare/kube"
)

// options are the flags.
type options struct {
	duration  time.Duration
	objects   int
	rate      float64
	every     time.Duration
	killEvery time.Duration
	seed      uint64
	out       string
}

// namespace is the namespace of all Notes.
const namespace = "soak"

// apiServer is the component of the control plane that is killed.
const apiServer = "kube-apiserver"

func main() {
	log.SetFlags(log.Ltime)
	process.EndWithGo()
	var o options
	flag.DurationVar(&o.duration, "for", time.Hour, "how long the objects change and faults happen")
	flag.IntVar(&o.objects, "objects", 10_000, "the number of Notes")
	flag.Float64Var(&o.rate, "rate", 20, "the number of changes by users per second")
	flag.DurationVar(&o.every, "every", 10*time.Second, "the time between two samples")
	flag.DurationVar(&o.killEvery, "kill-every", 10*time.Minute, "the time between two kills of the API server")
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of changes and faults")
	flag.StringVar(&o.out, "out", "soak", "the folder of the results")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := o.check(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func (o options) check() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("there are no arguments but flags: %s", flag.Arg(0))
	}
	if o.objects < 100 || o.rate <= 0 || o.every <= 0 || o.killEvery <= 0 || o.duration < 6*o.every {
		return errors.New("there are at least 100 objects, and at least six samples; a rate and a time are positive")
	}
	if info, err := os.Stat(o.out); err != nil || !info.IsDir() {
		return fmt.Errorf("-out %s is no folder: run the command as go -C bench run ./soak, or name a folder", o.out)
	}
	return nil
}

// run makes the soak, and returns an error if the operator has not passed.
func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "yare-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "operator")
	if err := command(ctx, "", "go", "build", "-trimpath", "-o", binary, "github.com/yare-go/yare/bench/soak/operator"); err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Options{Console: console.New(os.Stderr, "soak")})
	if err != nil {
		return err
	}
	defer p.Close()
	client, err := prepare(ctx, p, binary)
	if err != nil {
		return err
	}
	users := newUsers(client, o)
	log.Printf("creating %d Notes", o.objects)
	if err := users.createAll(ctx); err != nil {
		return err
	}
	front, err := newFront(p.Kubeconfig(), dir, o.seed)
	if err != nil {
		return err
	}
	defer front.proxy.Close()
	program, err := startProgram(binary, front.kubeconfig, dir)
	if err != nil {
		return err
	}
	defer program.kill()
	log.Printf("waiting until all Notes are reconciled")
	if err := waitUntilRight(ctx, client, program, 10*time.Minute); err != nil {
		return err
	}
	results := newResults(ctx, o)
	disturb(ctx, o, p, users, front, program, results)
	log.Printf("no changes and no faults any more: waiting until all Notes are right")
	began := time.Now()
	if err := waitUntilRight(ctx, client, program, 5*time.Minute); err != nil {
		results.Wrong = err.Error()
	}
	results.SecondsUntilRight = time.Since(began).Seconds()
	results.Changes, results.Faults = users.counts.all(), front.counts.all()
	results.judge()
	if err := results.write(o.out); err != nil {
		return err
	}
	return results.err()
}

// disturb lets users change objects and faults happen for the duration of the soak, and samples the
// program meanwhile. It ends earlier with ctx or the program.
func disturb(ctx context.Context, o options, p *plane.Plane, users *users, front *front, program *program, results *results) {
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	log.Printf("changes and faults for %s", o.duration)
	var working sync.WaitGroup
	users.change(ctx, &working)
	working.Go(func() { front.injectFaults(ctx) })
	working.Go(func() { killAPIServer(ctx, o, p, front) })
	began := time.Now()
	ticker := time.NewTicker(o.every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-program.process.Done():
			cancel()
		case <-ticker.C:
			s, err := program.sample(ctx)
			if err != nil {
				log.Printf("no sample: %v", err)
				continue
			}
			s.Second = time.Since(began).Seconds()
			results.Samples = append(results.Samples, s)
			if len(results.Samples)%30 == 0 {
				log.Printf("%s: %s", time.Since(began).Round(time.Second), s)
			}
		}
	}
	working.Wait()
}

// killAPIServer kills the API server and starts it again, at times before the end of the soak.
func killAPIServer(ctx context.Context, o options, p *plane.Plane, front *front) {
	for killed := o.killEvery; killed < o.duration-o.killEvery/10; killed += o.killEvery {
		if clock.SleepReal(ctx, o.killEvery) != nil {
			return
		}
		// The soak must not end while the API server is down.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		err := p.Kill(within, apiServer)
		if err == nil {
			front.counts.add("kill of the API server")
			_ = clock.SleepReal(ctx, 2*time.Second)
			err = p.StartComponent(within, apiServer)
		}
		cancel()
		if err != nil {
			log.Printf("killing the API server: %v", err)
		}
	}
}

// prepare makes the namespace and the definition of Notes, and returns a client with an
// administrator's rights.
func prepare(ctx context.Context, p *plane.Plane, binary string) (*kube.Client, error) {
	config, _, err := kube.ConfigSource{Kubeconfig: p.Kubeconfig()}.Load()
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	client = client.WithFieldManager("soak")
	_, err = kube.All[corev1.Namespace](client).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil {
		return nil, err
	}
	manifest, err := exec.CommandContext(ctx, binary, "crd").Output()
	if err != nil {
		return nil, fmt.Errorf("print the definition of Notes: %w", err)
	}
	kubectl := func(stdin string, args ...string) error {
		return command(ctx, stdin, p.Binary(), append([]string{"kubectl", "--kubeconfig", p.Kubeconfig()}, args...)...)
	}
	if err := kubectl(string(manifest), "apply", "--server-side", "-f", "-"); err != nil {
		return nil, err
	}
	return client, kubectl("", "wait", "--for=condition=Established", "--timeout=60s", "crd/notes.soak.example.com")
}

// command runs a program to its end.
func command(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, output)
	}
	return nil
}

// counts counts by name. Its methods are safe for concurrent use.
type counts struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]int)
	}
	c.by[name]++
}

// all returns a copy of the counts.
func (c *counts) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]int, len(c.by))
	for name, n := range c.by {
		all[name] = n
	}
	return all
}
