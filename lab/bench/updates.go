package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/replay"
	"github.com/yare-go/yare/lab/bench/internal/stats"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// updating is the work of a program that reconciles one update of each object. The updates come at a fixed rate. The
// programs run one after the other, because each watch costs the server time.
type updating struct {
	// group is how many updates are made at once. Groups of 50 at a rate of 500 a second come each 100 ms.
	group int
	// isReplayed is true if the replay server sends the updates, so that no API server runs beside the program.
	isReplayed bool
}

// groupSize is the size of a group of updates.
const groupSize = 50

// measureRound lets each program reconcile the updates.
func (u updating) measureRound(
	ctx context.Context, b *bench, r row, programs []*program, round int,
) (map[string]figures, error) {
	if u.isReplayed {
		b.useStore(r.objects)
	} else if err := b.useShops(ctx, r.objects); err != nil {
		return nil, err
	}
	all := make(map[string]figures)
	for i, p := range programs {
		f, err := u.measureProgram(ctx, b, p, r.objects, round*len(b.programs)+i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all[p.name] = f
	}
	return all, nil
}

// updateWriter makes the update of the i-th Shop. The number and the order are those of [replay.Store.UpdateEvent].
type updateWriter func(ctx context.Context, i, number, order int) (write, error)

// measureProgram lets one program reconcile the updates of a number, and returns the figures.
func (u updating) measureProgram(ctx context.Context, b *bench, p *program, objects, number int) (figures, error) {
	var kubeconfig string
	var writer updateWriter
	if u.isReplayed {
		handler := replay.New(b.store)
		server, file, err := loopback.StartWithFile(b.dir, handler)
		if err != nil {
			return nil, err
		}
		defer server.Close()
		kubeconfig, writer = file, replayUpdate(b.store, handler)
	} else {
		kubeconfig = b.cluster.plane.Kubeconfig()
		writer = func(ctx context.Context, i, number, _ int) (write, error) {
			return updateShop(ctx, b.cluster.client, i, number)
		}
	}
	running, err := start(p, kubeconfig, "shops", "BENCH_OBJECTS="+strconv.Itoa(objects), "BENCH_UPDATES=1")
	if err != nil {
		return nil, err
	}
	defer running.kill()
	if _, err := running.wait(ctx, "reconciled everything", running.all, maxStepTime); err != nil {
		return nil, err
	}
	if err := running.settle(ctx); err != nil {
		return nil, err
	}
	before, err := processorTime(running.process.Pid())
	if err != nil {
		return nil, err
	}
	writes, err := writeUpdates(ctx, writer, objects, b.options.rate, u.group, number)
	if err != nil {
		return nil, err
	}
	after, err := running.wait(ctx, "reconciled all updates", running.updated, time.Minute)
	if err != nil {
		return nil, err
	}
	records, err := running.waitForRecords(ctx, objects)
	if err != nil {
		return nil, err
	}
	f, err := latencies(writes, records)
	if err != nil {
		return nil, err
	}
	f["cpu"] = (after.cpu - before).Seconds()
	f["each"] = f["cpu"] / float64(objects)
	_, err = running.measureMemory(f, "")
	return f, err
}

// write is one update: when it was sent, when its answer came, and the version in the answer.
type write struct {
	sent, answered time.Time
	version        uint64
}

// replayUpdate returns a writer whose updates the replay server sends. An update is answered at the moment when it is
// sent.
func replayUpdate(store *replay.Store, server *replay.Server) updateWriter {
	return func(_ context.Context, i, number, order int) (write, error) {
		event, version := store.UpdateEvent(i, number, order)
		w := write{sent: time.Now(), version: version}
		w.answered = w.sent
		return w, server.Send(event)
	}
}

// writeUpdates updates each Shop once, in groups at a fixed rate. Each number has an order of the Shops of its own. A
// slow server makes the rate lower, because no more than 64 updates are under way.
func writeUpdates(ctx context.Context, update updateWriter, objects, rate, group, number int) ([]write, error) {
	writes := make([]write, objects)
	errs := make([]error, objects)
	order := rand.New(rand.NewPCG(uint64(number), 3)).Perm(objects)
	inFlight := make(chan struct{}, 64) // one value for each update under way
	var working sync.WaitGroup
	defer working.Wait()
	gap := time.Duration(group) * time.Second / time.Duration(rate)
	due := time.Now()
	for k, i := range order {
		if k%group == 0 {
			if err := clock.SleepReal(ctx, time.Until(due)); err != nil {
				return nil, err
			}
			// A late update is not followed by a burst, which would cost less than updates that come evenly.
			due = latest(due, time.Now().Add(-gap/4)).Add(gap)
		}
		inFlight <- struct{}{}
		working.Go(func() {
			defer func() { <-inFlight }()
			writes[i], errs[i] = update(ctx, i, number, k)
		})
	}
	working.Wait()
	return writes, errors.Join(errs...)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// updateShop gives a Shop another image and another annotation, as a release does.
func updateShop(ctx context.Context, client *kube.Client, i, number int) (write, error) {
	shop := workload.NewShop(i)
	release := fmt.Sprintf("%d.%d", number, i%10)
	patch := kube.MergePatch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"example.com/release": release}},
		"spec":     map[string]any{"image": shop.Spec.Image + "-" + release},
	})
	w := write{sent: time.Now()}
	made, err := kube.Namespaced[workload.Shop](client, shop.Namespace).Patch(ctx, shop.Name, patch)
	if err != nil {
		return w, err
	}
	w.answered = time.Now()
	w.version, err = strconv.ParseUint(made.ResourceVersion, 10, 64)
	return w, err
}

// latencies returns the figures of the updates.
func latencies(writes []write, records []record) (figures, error) {
	var fromAnswer, fromSending []float64
	var first, last time.Time
	for _, r := range records {
		w := writes[r.index]
		if r.version != w.version {
			return nil, fmt.Errorf("it reconciled version %d of object %d, and the update made version %d",
				r.version, r.index, w.version)
		}
		fromAnswer = append(fromAnswer, r.time.Sub(w.answered).Seconds())
		fromSending = append(fromSending, r.time.Sub(w.sent).Seconds())
		if first.IsZero() || w.sent.Before(first) {
			first = w.sent
		}
		if w.answered.After(last) {
			last = w.answered
		}
	}
	return figures{
		"p50": stats.Median(fromAnswer), "p99": stats.Quantile(fromAnswer, 0.99),
		"sentP50": stats.Median(fromSending), "sentP99": stats.Quantile(fromSending, 0.99),
		"rate": float64(len(records)) / last.Sub(first).Seconds(),
	}, nil
}
