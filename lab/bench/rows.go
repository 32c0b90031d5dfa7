package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/lab/bench/internal/replay"
)

// row is one kind of work that all programs do.
type row struct {
	name    string
	objects int
	// isForYare is true if yare alone does the work.
	isForYare bool
	// measureRound lets each of the programs do the work once, in this order.
	measureRound func(ctx context.Context, b *bench, r row, programs []*program, round int) (map[string]figures, error)
}

// rowCurve is the name of the rows in which the programs reconcile different numbers of objects of the replay server.
const rowCurve = "curve"

// rowWebhook is the name of the row with calls of a validator, and rowConversion of the one with calls that convert an
// object.
const (
	rowWebhook    = "webhook"
	rowConversion = "conversion"
)

// allRows returns all rows in the order in which they are measured.
func allRows(o options) []row {
	rows := []row{
		{name: "one", objects: 1, measureRound: syncShops},
		{name: "shops", objects: o.shops, measureRound: syncShops},
		{name: "updates", objects: o.updates, measureRound: updating{group: 1}.measureRound},
		{name: "grouped-updates", objects: o.updates, measureRound: updating{group: groupSize}.measureRound},
		{name: "replayed-updates", objects: o.updates, measureRound: updating{group: 1, isReplayed: true}.measureRound},
		{
			name: "replayed-groups", objects: o.updates, measureRound: updating{group: groupSize, isReplayed: true}.measureRound,
		},
		{name: "pods", objects: o.pods, measureRound: syncPods},
		{name: "webapps", objects: o.webapps, measureRound: applyWebApps},
		{name: rowWebhook, objects: 5000, isForYare: true, measureRound: calls{"BenchmarkWebhookCall"}.measureRound},
		{name: rowConversion, objects: 5000, isForYare: true, measureRound: calls{"BenchmarkConversionCall"}.measureRound},
	}
	for _, n := range o.curve {
		rows = append(rows, row{name: rowCurve, objects: n, measureRound: syncReplay})
	}
	return rows
}

// rowNames returns the names of all rows.
func rowNames(o options) []string {
	var names []string
	for _, r := range allRows(o) {
		if !slices.Contains(names, r.name) {
			names = append(names, r.name)
		}
	}
	return names
}

// bench measures rows.
type bench struct {
	options  options
	dir      string
	programs []*program
	results  *results
	commit   string

	// cluster is the running control plane, or nil. clusterUse names the rows that it is for: shops, pods or webapps.
	// Without a control plane it is empty.
	cluster    *cluster
	clusterUse string
	// store holds the objects of the replay server.
	store *replay.Store
}

// measureRow measures the rounds of a row that are not kept yet.
func (b *bench) measureRow(ctx context.Context, r row) error {
	rounds := b.options.rounds
	if r.name == rowCurve {
		rounds = b.options.curveRounds
	}
	for round := 1; round <= rounds; round++ {
		programs := slices.DeleteFunc(slices.Clone(b.programs), func(p *program) bool {
			return !p.hasRow(r.name) || r.isForYare && p.name != "yare" || b.results.has(r.name, p.name, round, r.objects)
		})
		if len(programs) == 0 {
			continue
		}
		// Each round has an order of its own, so that no program always comes first.
		random := rand.New(rand.NewPCG(uint64(round), uint64(r.objects)))
		random.Shuffle(len(programs), func(i, j int) { programs[i], programs[j] = programs[j], programs[i] })
		started := time.Now()
		all, err := r.measureRound(ctx, b, r, programs, round)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for _, p := range programs {
			each := result{
				Row: r.name, Program: p.name, Round: round, Objects: r.objects, Figures: all[p.name], Commit: b.commit,
			}
			if err := b.results.add(each); err != nil {
				return err
			}
		}
		log.Printf("%s, %d objects, round %d of %d: %.1f s", r.name, r.objects, round, rounds, time.Since(started).Seconds())
	}
	return nil
}

// useCluster makes b.cluster a control plane for one use. Rows with the same use share the control plane.
func (b *bench) useCluster(ctx context.Context, use string, nodes int) error {
	if b.clusterUse == use && b.cluster != nil {
		return b.cluster.plane.Err()
	}
	b.close()
	c, err := startCluster(ctx, nodes)
	b.cluster, b.clusterUse = c, use
	return err
}

// useShops makes b.cluster a control plane with this number of Shops.
func (b *bench) useShops(ctx context.Context, objects int) error {
	if err := b.useCluster(ctx, "shops", 1); err != nil {
		return err
	}
	if b.cluster.shops > objects {
		b.close()
		if err := b.useCluster(ctx, "shops", 1); err != nil {
			return err
		}
	}
	return b.cluster.fillShops(ctx, objects)
}

// useStore makes b.store a store of this number of Shops, and ends the control plane: nothing else shall use the
// processor.
func (b *bench) useStore(objects int) {
	b.close()
	if b.store == nil || b.store.Len() != objects {
		b.store = nil // before its successor is made
		b.store = replay.NewStore(objects)
	}
}

// close ends the control plane, if one runs.
func (b *bench) close() {
	if b.cluster != nil {
		b.cluster.plane.Close()
		b.cluster, b.clusterUse = nil, ""
	}
}

func syncShops(ctx context.Context, b *bench, r row, programs []*program, round int) (map[string]figures, error) {
	if err := b.useShops(ctx, r.objects); err != nil {
		return nil, err
	}
	s := syncing{kubeconfig: b.cluster.plane.Kubeconfig(), work: "shops", objects: r.objects}
	if r.name == "shops" && round <= b.options.lateRounds {
		s.late = b.options.late
	}
	return s.measureRound(ctx, programs)
}

func syncPods(ctx context.Context, b *bench, r row, programs []*program, _ int) (map[string]figures, error) {
	isNew := b.clusterUse != "pods"
	// A simulated node takes 110 Pods.
	if err := b.useCluster(ctx, "pods", r.objects/80+1); err != nil {
		return nil, err
	}
	if isNew {
		if err := b.cluster.fillPods(ctx, r.objects); err != nil {
			return nil, err
		}
	}
	s := syncing{kubeconfig: b.cluster.plane.Kubeconfig(), work: "pods", objects: r.objects}
	return s.measureRound(ctx, programs)
}

func syncReplay(ctx context.Context, b *bench, r row, programs []*program, _ int) (map[string]figures, error) {
	b.useStore(r.objects)
	server, kubeconfig, err := loopback.StartWithFile(b.dir, replay.New(b.store))
	if err != nil {
		return nil, err
	}
	defer server.Close()
	s := syncing{kubeconfig: kubeconfig, work: "shops", objects: r.objects}
	return s.measureRound(ctx, programs)
}

// syncing is the work of a program that reads all objects of a kind, and reconciles each once.
type syncing struct {
	kubeconfig string
	work       string
	objects    int
	// late is when the memory is measured a second time. If it is 0, the memory is measured once.
	late time.Duration
}

const (
	// memoryDelay is the time from the last reconcile until memory is measured.
	memoryDelay = 10 * time.Second
	// maxStepTime is how long a program may take for anything.
	maxStepTime = 5 * time.Minute
)

// measureRound lets each program do the work. A program that has ended its sync stays, idle, until its
// memory has been measured, while the next one works.
func (s syncing) measureRound(ctx context.Context, programs []*program) (map[string]figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	all := make(map[string]figures)
	errs := make([]error, len(programs))
	for i, p := range programs {
		running, err := start(p, s.kubeconfig, s.work, "BENCH_OBJECTS="+strconv.Itoa(s.objects))
		if err != nil {
			return nil, err
		}
		f, end, err := s.sync(ctx, running)
		if err != nil {
			running.kill()
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all[p.name] = f
		waiting.Go(func() {
			defer running.kill()
			errs[i] = s.measureAfterSync(ctx, running, f, end)
		})
		if err := running.settle(ctx); err != nil {
			return nil, err
		}
	}
	waiting.Wait()
	return all, errors.Join(errs...)
}

// sync waits for the end of the sync and returns its figures.
func (s syncing) sync(ctx context.Context, running *runningProgram) (figures, time.Time, error) {
	first, err := running.wait(ctx, "reconciled", running.first, maxStepTime)
	if err != nil {
		return nil, time.Time{}, err
	}
	all, err := running.wait(ctx, "reconciled everything", running.all, maxStepTime)
	if err != nil {
		return nil, time.Time{}, err
	}
	return figures{
		"first": first.time.Sub(running.started).Seconds(),
		"all":   all.time.Sub(running.started).Seconds(),
		"cpu":   all.cpu.Seconds(),
	}, all.time, nil
}

// measureAfterSync adds to f the figures that are measured after the sync. The sync ended at end.
func (s syncing) measureAfterSync(ctx context.Context, running *runningProgram, f figures, end time.Time) error {
	if err := clock.SleepReal(ctx, time.Until(end.Add(memoryDelay))); err != nil {
		return err
	}
	cpu, err := running.measureMemory(f, "")
	if err != nil {
		return err
	}
	f["cpu10"] = cpu.Seconds()
	if s.late == 0 {
		return nil
	}
	if err := clock.SleepReal(ctx, time.Until(end.Add(s.late))); err != nil {
		return err
	}
	late, err := running.measureMemory(f, "Late")
	if err != nil {
		return err
	}
	f["idle"] = (late - cpu).Seconds() / (s.late - memoryDelay).Minutes()
	return nil
}

// settle waits until the program has used less than two percent of a core for half a second, for
// five seconds at most. Afterwards its work in the background does not disturb the next program.
func (r *runningProgram) settle(ctx context.Context) error {
	const window = 500 * time.Millisecond
	before, err := processorTime(r.process.Pid())
	for range 10 {
		if err != nil {
			return err
		}
		if err := clock.SleepReal(ctx, window); err != nil {
			return err
		}
		var now time.Duration
		if now, err = processorTime(r.process.Pid()); now-before < window/50 {
			break
		}
		before = now
	}
	return err
}

// measureMemory adds the memory of the program to f, with a suffix to the names of the figures,
// and returns the processor time that the program has used.
func (r *runningProgram) measureMemory(f figures, suffix string) (time.Duration, error) {
	m, err := r.memory()
	if err != nil {
		return 0, err
	}
	f["resident"+suffix], f["anonymous"+suffix], f["peak"] = m.resident, m.anonymous, m.peak
	return processorTime(r.process.Pid())
}
