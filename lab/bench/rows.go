package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yare-go/yare/lab/bench/internal/replay"
)

// row is one kind of work that programs do.
type row struct {
	name string
	// title is the title in the report, with the number of objects.
	title   string
	objects int
	// work is what the programs reconcile: shops, pods, webapps or machines. It is empty if no program runs.
	work string
	// toolkits are those that take part. Default: all.
	toolkits []string
	// isReplayed is true if the replay server sends the objects, so that no API server runs beside the program.
	isReplayed bool
	// group is how many updates are made at once. Groups of 50 at a rate of 500 a second come each 100 ms. Without
	// updates it is 0.
	group int
	// isUnled is true if yare runs without arguments, and so without an election.
	isUnled bool
	// hasRest is true if the memory at rest is measured.
	hasRest bool
	// cpuLimit is the number of processors that a program may use, or 0.
	cpuLimit float64
	// benchmark is the benchmark of package operator that is the work.
	benchmark string
}

// The rows with rounds of their own: binaries have one, and the curve has half of the rounds.
const (
	rowBinary = "binary"
	rowCurve  = "curve"
)

// allRows returns all rows in the order in which they are measured.
func allRows() []row {
	const (
		updates  = "%d updates at a fixed rate"
		replayed = " from the replay server"
		grouped  = ", in groups of 50"
	)
	rows := []row{
		{name: rowBinary, title: "Binary", objects: 1},
		{name: "one", title: "%d custom resource", objects: 1, work: "shops"},
		{name: "limited", title: "%d custom resources with a CPU limit of 100m", objects: 1000, work: "shops", cpuLimit: 0.1},
		{name: "shops", title: "%d custom resources of 1.7 KB", objects: 10_000, work: "shops", hasRest: true},
		{name: "updates", title: updates, objects: 10_000, work: "shops", group: 1},
		{name: "grouped-updates", title: updates + grouped, objects: 10_000, work: "shops", group: 50},
		{
			name: "updates-unled", title: updates + " without an election", objects: 10_000, work: "shops", group: 1,
			isUnled: true, toolkits: []string{yare, kubeRS},
		},
		{name: "replayed-updates", title: updates + replayed, objects: 10_000, work: "shops", group: 1, isReplayed: true},
		{
			name: "replayed-groups", title: updates + replayed + grouped, objects: 10_000, work: "shops", group: 50,
			isReplayed: true,
		},
		{name: "pods", title: "%d Pods", objects: 5000, work: "pods", hasRest: true},
		{
			name: "machines", title: "%d Machines of Cluster API of 3 KB", objects: 20_000, work: "machines", hasRest: true,
			toolkits: []string{controllerRuntime},
		},
		{
			name: "machine-updates", title: "%d updates of Machines of Cluster API at a fixed rate", objects: 20_000, work: "machines",
			group: 1, toolkits: []string{controllerRuntime},
		},
		{name: "webapps", title: "%d WebApps: a Deployment and a status by server-side apply", objects: 100, work: "webapps"},
		{name: "webhook", title: "One call of a webhook, in %d calls", objects: 5000, benchmark: "WebhookCall"},
		{name: "conversion", title: "One conversion of an object, in %d calls", objects: 5000, benchmark: "ConversionCall"},
	}
	for _, n := range []int{1, 1000, 10_000, 50_000, 100_000} {
		rows = append(rows, row{
			name: rowCurve, title: "%d custom resources" + replayed, objects: n, work: "shops", isReplayed: true,
			hasRest: n == 100_000,
		})
	}
	return rows
}

// hasProgram reports whether p takes part.
func (r row) hasProgram(p *program) bool {
	switch {
	case r.benchmark != "":
		return p.name == yare || p.name == yareBase
	case p.env == "BENCH_PROJECTED=1":
		return r.name == "shops" || r.name == "pods"
	}
	return len(r.toolkits) == 0 || slices.Contains(r.toolkits, p.toolkit)
}

// rounds returns the first and the last round of a row. Round 0 counts, and the others measure.
func (r row) rounds(all int) (first, last int) {
	switch {
	case r.name == rowBinary:
		return 1, 1
	case r.name == rowCurve:
		return 0, (all + 1) / 2
	case r.benchmark != "":
		return 1, all
	}
	return 0, all
}

// bench measures rows.
type bench struct {
	options  options
	dir      string
	programs []*program
	results  *results
	setup    setup
	// cluster is the running control plane, or nil.
	cluster *cluster
	// store holds the objects of the replay server.
	store *replay.Store
	// jobs counts the jobs.
	jobs int
}

// measureRow measures the rounds of a row that are not kept yet.
func (b *bench) measureRow(ctx context.Context, r row) error {
	if b.options.objects > 0 {
		r.objects = b.options.objects
	}
	first, last := r.rounds(b.options.rounds)
	if r.cpuLimit > 0 && !hasControlGroups() {
		return nil
	}
	for round := first; round <= last; round++ {
		programs := slices.DeleteFunc(slices.Clone(b.programs), func(p *program) bool {
			return !r.hasProgram(p) || b.results.has(r.name, p.name, round, r.objects)
		})
		if len(programs) == 0 {
			continue
		}
		// Each round has an order of its own, so that no program always comes first.
		random := rand.New(rand.NewPCG(uint64(round), uint64(r.objects)))
		random.Shuffle(len(programs), func(i, j int) { programs[i], programs[j] = programs[j], programs[i] })
		started := time.Now()
		all, err := b.measureRound(ctx, r, programs, round)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for i, p := range programs {
			err := b.results.add(result{
				Row: r.name, Program: p.name, Round: round, Objects: r.objects, Figures: all[i],
				Commit: fmt.Sprint(b.setup["commit"]),
			})
			if err != nil {
				return err
			}
		}
		log.Printf("%s, %d objects, round %d of %d: %.1f s", r.name, r.objects, round, last, time.Since(started).Seconds())
	}
	return nil
}

// measureRound lets each of the programs do the work once, in this order. A program that has done the work stays, idle,
// until its figures are complete, while the next one works. Where the work is done by updates, or writes, one program
// runs at a time: each watch costs the server time for each update.
func (b *bench) measureRound(ctx context.Context, r row, programs []*program, round int) ([]figures, error) {
	working, ctx := errgroup.WithContext(ctx)
	all := make([]figures, len(programs))
	for i, p := range programs {
		all[i] = make(figures)
		b.jobs++
		j := &job{bench: b, row: r, program: p, round: round, number: b.jobs, figures: all[i]}
		next, cancel := context.WithCancel(ctx)
		working.Go(func() error {
			defer cancel()
			if err := j.do(ctx, cancel); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			return nil
		})
		if <-next.Done(); ctx.Err() != nil {
			break
		}
	}
	return all, working.Wait()
}

// useCluster makes b.cluster a control plane with the objects of r. Rows with the same work share the control plane.
func (b *bench) useCluster(ctx context.Context, r row) (err error) {
	if c := b.cluster; c != nil && (c.work != r.work || c.objects > r.objects) {
		b.close()
	}
	if b.cluster == nil {
		if b.cluster, err = startCluster(ctx, b.options.source, r); err != nil {
			return err
		}
	}
	return errors.Join(b.cluster.plane.Err(), b.cluster.fill(ctx, r.objects))
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
		b.cluster = nil
	}
}
