package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/replay"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// updateWriter makes the update of the i-th object. The number and the order are those of [replay.Store.UpdateEvent].
type updateWriter func(ctx context.Context, i, number, order int) (write, error)

// write is one update: when it was sent, when its answer came, and the version in the answer.
type write struct {
	sent, answered time.Time
	version        int64
}

// replayUpdate returns a writer whose updates the replay server sends. An update is answered at the moment when it is
// sent.
func replayUpdate(store *replay.Store, server *replay.Server) updateWriter {
	return func(_ context.Context, i, number, order int) (write, error) {
		event, version := store.UpdateEvent(i, number, order)
		now := time.Now()
		return write{sent: now, answered: now, version: version}, server.Send(event)
	}
}

// updateShop returns a writer that gives a Shop another image and another annotation, as a release does.
func updateShop(client *kube.Client) updateWriter {
	return func(ctx context.Context, i, number, _ int) (write, error) {
		shop := workload.NewShop(i)
		release := fmt.Sprintf("%d.%d", number, i%10)
		return patch(ctx, kube.Namespaced[workload.Shop](client, shop.Namespace), shop.Name, release,
			map[string]any{"image": shop.Spec.Image + "-" + release})
	}
}

// updateMachine returns a writer that gives a Machine another annotation and another version.
func updateMachine(client *kube.Client) updateWriter {
	return func(ctx context.Context, i, number, _ int) (write, error) {
		machine := workload.NewMachine(i)
		return patch(ctx, kube.Namespaced[workload.Machine](client, machine.Namespace), machine.Name,
			fmt.Sprintf("%d.%d", number, i%10), map[string]any{"version": fmt.Sprintf("v1.40.%d", number)})
	}
}

// patch gives an object another spec, and an annotation with its release.
func patch[T any](ctx context.Context, api kube.API[T], name, release string, spec map[string]any) (write, error) {
	w := write{sent: time.Now()}
	made, err := api.Patch(ctx, name, kube.MergePatch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"example.com/release": release}}, "spec": spec,
	}))
	if err != nil {
		return w, err
	}
	w.answered = time.Now()
	w.version, err = strconv.ParseInt(api.Object(made).GetResourceVersion(), 10, 64)
	return w, err
}

// writeUpdates updates each object once, in groups at a fixed rate. Each number has its own order of the objects. A
// slow server makes the rate lower, because no more than 64 updates are under way.
func writeUpdates(ctx context.Context, update updateWriter, r row, rate, number int) ([]write, error) {
	writes := make([]write, r.objects)
	var writing errgroup.Group
	writing.SetLimit(64)
	gap := time.Duration(r.group) * time.Second / time.Duration(rate)
	due := time.Now()
	var err error
	for k, i := range rand.New(rand.NewPCG(uint64(number), 3)).Perm(r.objects) {
		if k%r.group == 0 {
			if err = clock.SleepReal(ctx, time.Until(due)); err != nil {
				break
			}
			// A late update is not followed by a burst, which would cost less than updates that come evenly.
			if earliest := time.Now().Add(-gap / 4); due.Before(earliest) {
				due = earliest
			}
			due = due.Add(gap)
		}
		writing.Go(func() (err error) {
			writes[i], err = update(ctx, i, number, k)
			return err
		})
	}
	if failure := writing.Wait(); failure != nil {
		return nil, failure
	}
	return writes, err
}

// addLatencies adds the latencies of updates and their rate to f. The records are those of [event].
func addLatencies(f figures, writes []write, records [][3]int64) error {
	var fromAnswer, fromSending []float64
	first, last := writes[0].sent, writes[0].answered
	for _, r := range records {
		w, at := writes[r[0]], time.Unix(0, r[2])
		if r[1] != w.version {
			return fmt.Errorf("it reconciled version %d of object %d, and the update made version %d", r[1], r[0], w.version)
		}
		fromAnswer = append(fromAnswer, at.Sub(w.answered).Seconds())
		fromSending = append(fromSending, at.Sub(w.sent).Seconds())
		if w.sent.Before(first) {
			first = w.sent
		}
		if w.answered.After(last) {
			last = w.answered
		}
	}
	f["p50"], f["p99"] = median(fromAnswer), quantile(fromAnswer, 0.99)
	f["sentP50"], f["sentP99"] = median(fromSending), quantile(fromSending, 0.99)
	f["rate"] = float64(len(records)) / last.Sub(first).Seconds()
	return nil
}
