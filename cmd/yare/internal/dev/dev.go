package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
)

// Options are the settings of [Run].
type Options struct {
	Dir        string        // the operator's folder
	Args       []string      // the operator's arguments
	Kubeconfig string        // where to put the access to the cluster; "" for a place of its own
	Nodes      int           // simulated nodes; 0 for the default
	Verbose    bool          // show the control plane's log too, and the operator's in full
	UntilReady bool          // end when the samples are ready
	Timeout    time.Duration // how long UntilReady may take
	Yare       string        // how to call yare from another terminal
	Console    *console.Console
}

// Run runs the loop until ctx ends, and then returns nil, or until an error occurs that no saved
// file can repair. It leaves no process and no file.
func Run(ctx context.Context, o Options) error {
	program, err := inspect(ctx, o.Dir)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	work, err := newWorkdir(os.TempDir())
	if err != nil {
		return err
	}
	defer work.remove()

	s := &session{Options: o, program: program, work: work, files: newFiles(program)}
	defer s.close()
	if err := s.begin(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	return unlessEnded(ctx, s.loop(ctx))
}

// unlessEnded returns err, or nil if ctx has ended, because err is a consequence of that end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A session is one run of the loop. After begin, one goroutine owns all of it.
type session struct {
	Options
	program program
	work    *workdir
	files   *files

	plane   *plane.Plane
	kubectl kubectl
	runner  runner

	builds int
	built  string // the newest binary that was built, "" before the first
	crds   crds   // as the newest binary prints them
	// permissions are the permissions that the newest binary prints. granted are the permissions that the
	// operator has, and nil before the first grant.
	permissions permissions
	granted     *permissions
	account     string           // the kubeconfig of the operator, "" before it is written
	applied     string           // the text of the CRDs that the server has
	sample      string           // the text of the sample that the server has
	restart     <-chan time.Time // when an operator that ended is started again
	waiting     string           // why the samples are not ready
	ready       time.Time        // since when the samples are ready, without a break
}

func (s *session) close() {
	s.runner.stop()
	if s.plane != nil {
		s.plane.Close()
	}
}

// begin builds the operator and starts the control plane, side by side.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	work.Go(func() {
		if err := s.firstBuild(ctx); err != nil {
			cancel(err)
		}
	})
	work.Go(func() {
		p, err := plane.Start(ctx, plane.Options{
			Finder:     plane.Finder{Dir: s.program.dir},
			Kubeconfig: s.Kubeconfig,
			Nodes:      s.Nodes,
			Title:      "yare dev " + s.Dir,
			Verbose:    s.Verbose,
			Log:        s.log(),
			Console:    s.Console,
		})
		s.plane = p
		if err != nil {
			cancel(err)
			return
		}
		s.welcome()
	})
	work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.kubectl = kubectl{binary: s.plane.Binary(), kubeconfig: s.plane.Kubeconfig()}
	s.runner.args, s.runner.verbose = s.Args, s.Verbose
	return nil
}

func (s *session) welcome() {
	s.Console.Printf("the control plane is ready (%s); from another terminal:", console.Duration(s.plane.Boot()))
	s.Console.Printf("  %s kubectl get all -A", s.Yare)
	s.Console.Printf("  export KUBECONFIG=%s", s.plane.Kubeconfig())
}

func (s *session) log() io.Writer {
	if s.Verbose {
		return os.Stderr
	}
	return nil
}

// firstBuild builds until the operator compiles, and reads its CRDs.
func (s *session) firstBuild(ctx context.Context) error {
	for {
		err := s.build(ctx)
		var broken *compileError
		var refused *operatorError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &broken) && s.UntilReady:
			return fmt.Errorf("building %s: %w", s.Dir, err)
		case errors.As(err, &broken):
			s.Console.Printf("%s does not compile; waiting for the next save:", s.Dir)
			s.Console.Block(broken.said)
		case errors.As(err, &refused) && !s.UntilReady:
			s.reportProblems(refused)
		default:
			return err
		}
		if _, err := s.files.wait(ctx); err != nil {
			return err
		}
	}
}

// build builds the operator and reads the CRDs it prints.
func (s *session) build(ctx context.Context) error {
	s.files.refresh(ctx)
	started := time.Now()
	task := s.Console.Task()
	defer task.Done()
	if s.built == "" {
		// Later the operator itself writes to the terminal.
		stop := every(time.Second, func() {
			task.Set("building %s (%s)", s.Dir, console.Duration(time.Since(started)))
		})
		defer stop()
	}
	binary := filepath.Join(s.work.path, fmt.Sprintf("operator-%d", s.builds))
	s.builds++
	if err := s.program.build(ctx, binary); err != nil {
		return err
	}
	if s.built != "" && isSame(s.built, binary) {
		_ = os.Remove(binary) // an error does not matter: the folder is removed at the end
		return errUnchanged
	}
	printed, err := printedCRDs(ctx, binary, s.Dir)
	var refused *operatorError
	if errors.As(err, &refused) {
		refused.said = s.program.withPositions(ctx, refused.said)
	}
	var granted permissions
	if err == nil {
		granted, err = printedPermissions(ctx, binary, s.Dir, s.Args)
	}
	if err != nil {
		return err
	}
	s.built, s.crds, s.permissions = binary, printed, granted
	s.Console.Printf("built %s (%s)", s.Dir, console.Duration(time.Since(started)))
	return nil
}

// reportProblems prints what the operator reports instead of its CRDs, and what happens next.
func (s *session) reportProblems(refused *operatorError) {
	for line := range strings.SplitSeq(refused.said, "\n") {
		s.Console.Printf("%s", line)
	}
	s.Console.Printf("%s", s.meanwhile())
}

// errUnchanged means that a build gave the same program as before.
var errUnchanged = errors.New("the same program")

func isSame(a, b string) bool {
	x, err1 := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// every calls f after each period until the function it returns is called, which waits
// for the last call.
func every(d time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	})
	return func() {
		close(done)
		ticking.Wait()
	}
}
