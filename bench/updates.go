package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/yare-go/yare/bench/internal/stats"
	"github.com/yare-go/yare/bench/internal/workload"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// update lets each program follow one update of each object, made at a fixed rate. The programs
// run one after the other, because each watch costs the server time.
func update(ctx context.Context, b *bench, r row, programs []*program, round int) (map[string]figures, error) {
	if err := b.useShops(ctx, r.objects); err != nil {
		return nil, err
	}
	all := make(map[string]figures)
	for i, p := range programs {
		f, err := followUpdates(ctx, b, p, r.objects, round*len(b.programs)+i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all[p.name] = f
	}
	return all, nil
}

func followUpdates(ctx context.Context, b *bench, p *program, objects, number int) (figures, error) {
	running, err := start(p, b.cluster.plane.Kubeconfig(), "shops", "BENCH_OBJECTS="+strconv.Itoa(objects), "BENCH_UPDATES=1")
	if err != nil {
		return nil, err
	}
	defer running.kill()
	if _, err := running.wait(ctx, "reconciled everything", running.all, patience); err != nil {
		return nil, err
	}
	if err := running.settle(ctx); err != nil {
		return nil, err
	}
	before, err := processorTime(running.process.Pid())
	if err != nil {
		return nil, err
	}
	writes, err := updateShops(ctx, b.cluster.client, objects, b.options.rate, number)
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
	_, err = running.measureMemory(f, "")
	return f, err
}

// write is one update: when it was sent, when its answer came, and the version in the answer.
type write struct {
	sent, answered time.Time
	version        uint64
}

// updateShops updates each Shop once, in an order of the number's own, at a fixed rate. A slow
// server makes the rate lower, because no more than 64 updates are under way.
func updateShops(ctx context.Context, client *kube.Client, objects, rate, number int) ([]write, error) {
	writes := make([]write, objects)
	errs := make([]error, objects)
	order := rand.New(rand.NewPCG(uint64(number), 3)).Perm(objects)
	places := make(chan struct{}, 64)
	var working sync.WaitGroup
	defer working.Wait()
	started := time.Now()
	for k, i := range order {
		if err := clock.SleepReal(ctx, time.Until(started.Add(time.Duration(k)*time.Second/time.Duration(rate)))); err != nil {
			return nil, err
		}
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			writes[i], errs[i] = updateShop(ctx, client, i, number)
		})
	}
	working.Wait()
	return writes, errors.Join(errs...)
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
			return nil, fmt.Errorf("it reconciled version %d of object %d, and the update made version %d", r.version, r.index, w.version)
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
