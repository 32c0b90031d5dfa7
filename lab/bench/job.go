package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/replay"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// job is one program that does the work of a row once.
type job struct {
	bench   *bench
	row     row
	program *program
	// figures are those that have been measured so far.
	figures figures
	// round is 0 if the job counts. number differs between the jobs of a run.
	round, number int

	kubeconfig string
	update     updateWriter
	running    *runningProgram
	// proxy and received count in round 0. In other rounds proxy is nil.
	proxy    *proxy.Proxy
	received byteCount
	writes   []write
	// before is the processor time before the work, and done is when the work was done.
	before time.Duration
	done   event
	// closers end what the job has started. The last one comes first.
	closers []func()
}

const (
	// settleDelay is the time after which the work of a program in the background does not disturb the next work.
	settleDelay = 3 * time.Second
	// restDelay is the time from the end of the work until its processor time is read. Activity that ends by then
	// belongs to the work.
	restDelay = 10 * time.Second
	// restRounds is the number of rounds in which the memory at rest is measured.
	restRounds = 3
	// maxStepTime is how long a program may take for anything.
	maxStepTime = 5 * time.Minute
)

// do lets the program do its work, and measures. It calls next when another program can do its work.
func (j *job) do(ctx context.Context, next func()) (err error) {
	defer next()
	defer func() {
		for i := len(j.closers) - 1; i >= 0; i-- {
			j.closers[i]()
		}
		if j.row.work == "webapps" && err == nil {
			err = j.bench.cluster.deleteWebApps(ctx)
		}
	}()
	switch {
	case j.row.name == rowBinary:
		j.figures["size"], j.figures["gzip"] = j.program.size, j.program.gzip
		return nil
	case j.row.benchmark != "":
		j.bench.close() // nothing else shall use the processor
		return j.program.measureCalls(ctx, j.row, j.figures)
	}
	if err := j.serve(ctx); err != nil {
		return err
	}
	if err := j.start(ctx); err != nil {
		return err
	}
	j.closers = append(j.closers, j.running.kill)
	if err := j.work(ctx); err != nil {
		return err
	}
	j.figures["cpu"] = (j.done.cpu - j.before).Seconds()
	if j.row.group == 0 && j.row.work != "webapps" {
		if err := clock.SleepReal(ctx, settleDelay); err != nil {
			return err
		}
		next()
	}
	return j.measure(ctx)
}

// serve makes the API server of the job. In round 0 a proxy stands before the API server.
func (j *job) serve(ctx context.Context) error {
	b := j.bench
	if j.row.isReplayed {
		b.useStore(j.row.objects)
		handler := replay.New(b.store)
		server, file, err := loopback.StartWithFile(b.dir, handler)
		if err != nil {
			return err
		}
		j.closers = append(j.closers, server.Close)
		j.kubeconfig, j.update = file, replayUpdate(b.store, handler)
	} else {
		if err := b.useCluster(ctx, j.row); err != nil {
			return err
		}
		j.kubeconfig, j.update = b.cluster.plane.Kubeconfig(), updateShop(b.cluster.client)
		if j.row.work == "machines" {
			j.update = updateMachine(b.cluster.client)
		}
	}
	if j.round > 0 {
		return nil
	}
	config, err := loadConfig(j.kubeconfig)
	if err != nil {
		return err
	}
	if j.proxy, err = proxy.New(proxy.Options{Target: config, Hooks: []proxy.Hook{proxy.HookFunc(j.count)}}); err != nil {
		return err
	}
	j.closers = append(j.closers, j.proxy.Close)
	session, err := j.proxy.NewSession(j.program.name)
	if err != nil {
		return err
	}
	j.kubeconfig = filepath.Join(b.dir, "kubeconfig-"+j.program.name)
	return os.WriteFile(j.kubeconfig, session.Kubeconfig(), 0o600)
}

// count passes a request on, and counts the bytes of the answer.
func (j *job) count(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	response, err := next(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, &j.received), response.Body}
	}
	return response, err
}

// byteCount is a writer that counts.
type byteCount struct{ atomic.Int64 }

// Write counts.
func (c *byteCount) Write(data []byte) (int, error) {
	c.Add(int64(len(data)))
	return len(data), nil
}

// start starts the program as it is installed, with a Lease that no program before has held.
func (j *job) start(ctx context.Context) (err error) {
	name := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	env := []string{
		"KUBECONFIG=" + j.kubeconfig, "BENCH_WORK=" + j.row.work, "BENCH_OBJECTS=" + strconv.Itoa(j.row.objects),
		"BENCH_LEASE=" + name, j.program.env,
	}
	if j.row.group > 0 {
		env = append(env, "BENCH_UPDATES=1")
	}
	if j.proxy != nil {
		env = append(env, "BENCH_COUNT=1")
	}
	command := []string{j.program.path}
	if j.row.work == "machines" {
		command[0] += "-machines"
	}
	if j.program.toolkit == yare && !j.row.isUnled {
		args, more, err := j.program.installation(ctx, env, name)
		if err != nil {
			return err
		}
		command, env = append(command, args...), append(env, more...)
	}
	j.running, err = start(ctx, name, j.row.cpuLimit, env, command...)
	return err
}

// work waits until the program has done its work.
func (j *job) work(ctx context.Context) (err error) {
	r, f := j.running, j.figures
	if j.row.work == "webapps" {
		apps := kube.Namespaced[workload.WebApp](j.bench.cluster.client, webAppNamespace)
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			<-r.process.Done() // at the latest when the job is closed
			cancel()
		}()
		err := waitForAll(ctx, apps, j.row.objects, func(app *workload.WebApp) bool { return app.Status.Ready })
		if err != nil {
			return fmt.Errorf("%w\n%s", err, r.log)
		}
		j.done.Nanos = time.Now().UnixNano()
		j.done.cpu, err = r.cpu()
		f["all"] = j.doneTime().Sub(r.started).Seconds()
		return err
	}
	first, err := r.wait(ctx, "first")
	if err != nil {
		return err
	}
	if j.done, err = r.wait(ctx, "all"); err != nil {
		return err
	}
	if j.row.group == 0 {
		f["first"], f["all"] = time.Unix(0, first.Nanos).Sub(r.started).Seconds(), j.doneTime().Sub(r.started).Seconds()
		return nil
	}
	if err := clock.SleepReal(ctx, settleDelay); err != nil {
		return err
	}
	if j.before, err = r.cpu(); err != nil {
		return err
	}
	if j.writes, err = writeUpdates(ctx, j.update, j.row, j.bench.options.rate, j.number); err != nil {
		return err
	}
	j.done, err = r.wait(ctx, "updated")
	return err
}

func (j *job) doneTime() time.Time { return time.Unix(0, j.done.Nanos) }

// measure adds the figures that are measured after the work.
func (j *job) measure(ctx context.Context) error {
	f, r := j.figures, j.running
	if err := clock.SleepReal(ctx, time.Until(j.doneTime().Add(restDelay))); err != nil {
		return err
	}
	cpu, err := r.cpu()
	if err != nil {
		return err
	}
	if j.proxy != nil {
		clear(f) // with a proxy, times and memory are not those of the program alone
		f["reconciles"], f["requests"] = float64(r.reconciles.Load()), float64(len(j.proxy.Requests()))
		f["received"] = float64(j.received.Load())
		return nil
	}
	f["cpu10"] = (cpu - j.before).Seconds()
	if f["peak"], err = r.memory("VmHWM"); err != nil {
		return err
	}
	if peak := r.groupPeak(); peak > 0 {
		f["groupPeak"] = peak
	}
	if j.row.group > 0 {
		records, err := r.wait(ctx, "records")
		if err != nil {
			return err
		}
		return addLatencies(f, j.writes, records.Records)
	}
	late := j.bench.options.late
	if !j.row.hasRest || late == 0 || j.round > restRounds {
		return nil
	}
	if err := clock.SleepReal(ctx, time.Until(j.doneTime().Add(late))); err != nil {
		return err
	}
	after, err := r.cpu()
	f["idle"] = (after - cpu).Seconds() / (late - restDelay).Minutes()
	resident, residentErr := r.memory("VmRSS")
	anonymous, anonymousErr := r.memory("RssAnon")
	f["residentLate"], f["anonymousLate"] = resident, anonymous
	return errors.Join(err, residentErr, anonymousErr)
}
