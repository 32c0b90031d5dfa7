package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/policy"
)

const (
	// readyPeriod is how often the samples are checked with UntilReady.
	readyPeriod = 500 * time.Millisecond
	// readyDuration is how long the samples must stay ready, and the operator alive: an operator that
	// crashes at its start does not work.
	readyDuration = 2 * time.Second
	// untilNextSave is longer than each session. It stands for the time until a save, which nobody knows.
	untilNextSave = 365 * 24 * time.Hour
)

// session is one run of the loop. After begin, one goroutine uses it.
type session struct {
	Options
	files   *files
	builder builder
	account account

	plane   *plane.Plane
	kubectl kubectl
	runner  runner
	// relay and page are nil if they cannot be started.
	relay *webhookRelay
	page  *livePage

	// appliedCRDs is the text of the CRDs that the server has. appliedSample is the text of the sample that it has, or
	// empty.
	appliedCRDs, appliedSample string
	// appliedPolicies are the admission policies that the server has. arePoliciesChecked is false if their types must be
	// checked again, because a definition has changed.
	appliedPolicies    policies
	arePoliciesChecked bool
	// startedPermissions are the permissions of the operator that was started last. They name the configurations of its
	// webhooks.
	startedPermissions permissions
	// restart receives a value when an operator that has ended must be started again.
	restart <-chan time.Time
	// unreadyReason is why the operator or a sample is not ready. It is empty if all are ready.
	unreadyReason string
	// readySince is the time since which all are ready, without a break.
	readySince time.Time
}

// newSession returns a session that has begun nothing yet. Its files lie in a folder.
func newSession(o Options, t target, folder string) *session {
	s := &session{Options: o, files: newFiles(t), account: account{path: filepath.Join(folder, "kubeconfig")}}
	s.builder = builder{
		target: t, files: s.files, args: o.Args, folder: folder, console: o.Console, durations: durations.Default(),
	}
	var err error
	if s.relay, err = newWebhookRelay(folder); err != nil {
		s.Console.Printf("calls to webhooks fail while the operator is restarted: %v", err)
	}
	if s.page, err = newLivePage(folder); err != nil {
		s.Console.Printf("there is no live page: %v", err)
	}
	s.runner.relay, s.runner.page = s.relay, s.page
	return s
}

// close ends the operator, the relay and the control plane.
func (s *session) close() {
	s.runner.stop()
	s.relay.close()
	s.page.close()
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
			Finder:     plane.Finder{Dir: s.builder.target.dir, Kubernetes: s.Kubernetes},
			Emulate:    s.Emulate,
			Kubeconfig: s.Kubeconfig,
			Nodes:      s.Nodes,
			Title:      "yare dev " + s.Dir,
			Verbose:    s.Verbose,
			Log:        s.logWriter(),
			Console:    s.Console,
		})
		s.plane = p
		if err != nil {
			cancel(err)
			return
		}
		s.printAccess()
	})
	work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.kubectl = kubectl{binary: s.plane.Binary(), kubeconfig: s.plane.Kubeconfig()}
	s.runner.args, s.runner.isVerbose = s.Args, s.Verbose
	return nil
}

// printAccess prints how to reach the control plane.
func (s *session) printAccess() {
	s.Console.Printf("the control plane is ready (%s); from another terminal:", console.Duration(s.plane.StartDuration()))
	s.Console.Printf("  %s kubectl get all -A", s.Yare)
	s.Console.Printf("  export KUBECONFIG=%s", s.plane.Kubeconfig())
}

// logWriter returns the writer of the control plane's log, or nil.
func (s *session) logWriter() io.Writer {
	if s.Verbose {
		return os.Stderr
	}
	return nil
}

// firstBuild builds until the operator compiles, and reads its CRDs.
func (s *session) firstBuild(ctx context.Context) error {
	for {
		err := s.builder.build(ctx)
		var broken *compileError
		var refused *operatorError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &broken) && s.UntilReady:
			return fmt.Errorf("build %s: %w", s.Dir, err)
		case errors.As(err, &broken):
			s.Console.Printf("%s does not compile; waiting for the next save:", s.Dir)
			s.Console.Block(broken.output)
		case errors.As(err, &refused) && !s.UntilReady:
			s.reportProblems(refused.output)
		default:
			return err
		}
		if _, err := s.files.waitForChanges(ctx); err != nil {
			return err
		}
	}
}

// reportProblems prints what is wrong with the newest build, and what happens next.
func (s *session) reportProblems(problems string) {
	for line := range strings.SplitSeq(problems, "\n") {
		s.Console.Printf("%s", line)
	}
	s.Console.Printf("%s", s.nextStepText())
}

// loop deploys what saved files change, starts the operator again when it has ended, and waits for the end of the
// control plane, until ctx ends or an error cannot be repaired by a save.
func (s *session) loop(ctx context.Context) error {
	if err := s.deploy(ctx); err != nil {
		return err
	}
	look := time.NewTicker(lookPeriod)
	defer look.Stop()
	var readiness, deadline <-chan time.Time
	if s.UntilReady {
		ticker := time.NewTicker(readyPeriod)
		defer ticker.Stop()
		timer := time.NewTimer(s.Timeout)
		defer timer.Stop()
		readiness, deadline = ticker.C, timer.C
	}
	started := time.Now()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.plane.Done():
			return fmt.Errorf("%w\nstart `yare dev` again", s.plane.Err())
		case <-deadline:
			return fmt.Errorf("not ready after %s: %s", s.Timeout, s.unreadyReason)
		case <-look.C:
			if address := s.page.takeNewAddress(); address != "" {
				s.Console.Printf("what the operator does, and why: %s", address)
			}
			if names := s.files.takeChanges(); len(names) > 0 {
				err = s.deployChanges(ctx, names)
			}
		case <-s.runner.ended():
			s.planRestart()
		case <-s.restart:
			s.restart = nil
			// Not the newest build: the API server may have refused the definitions of the newest build.
			s.start(s.runner.binary)
		case <-readiness:
			if s.checkReady(ctx) {
				s.Console.Printf("everything is ready (%s)", console.Duration(time.Since(started)))
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// deployChanges builds and deploys what the changed files change.
func (s *session) deployChanges(ctx context.Context, names []string) error {
	sample := s.builder.target.sample()
	if slices.Contains(names, sample) {
		names = slices.DeleteFunc(names, func(name string) bool { return name == sample })
		if len(names) == 0 {
			return s.applySample(ctx)
		}
		s.appliedSample = "" // applied with the new operator
	}
	s.Console.Printf("%s; building again", describeChanges(names))
	err := s.builder.build(ctx)
	var broken *compileError
	var refused *operatorError
	switch {
	case err == nil:
		return s.deploy(ctx)
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errUnchanged):
		s.Console.Printf("the program is the same as before")
		if !s.runner.isRunning() || s.runner.binary != s.builder.binary {
			return s.deploy(ctx)
		}
		return s.applySample(ctx)
	case errors.As(err, &broken):
		s.Console.Printf("%s does not compile; %s:", s.Dir, s.nextStepText())
		s.Console.Block(broken.output)
	case errors.As(err, &refused):
		s.reportProblems(refused.output)
	default:
		s.reportProblems(err.Error())
	}
	return nil
}

// describeChanges returns which files have changed, in short.
func describeChanges(names []string) string {
	if len(names) == 1 {
		return filepath.Base(names[0]) + " changed"
	}
	return fmt.Sprintf("%s and %d more changed", filepath.Base(names[0]), len(names)-1)
}

// nextStepText returns a description of what happens until the next save.
func (s *session) nextStepText() string {
	if s.runner.isRunning() {
		return "the operator built before goes on until the next save"
	}
	return "waiting for the next save"
}

// grant gives the operator the permissions that the newest build prints. An operator that prints none runs as
// administrator.
func (s *session) grant(ctx context.Context) error {
	if s.builder.permissions.isUnknown {
		if s.runner.kubeconfig != s.plane.Kubeconfig() {
			s.Console.Printf("%s has no subcommand permissions, so it runs as administrator; operator.Main brings it", s.Dir)
		}
		s.runner.kubeconfig = s.plane.Kubeconfig()
		return nil
	}
	kubeconfig, err := s.account.grant(ctx, s.kubectl, s.builder.permissions)
	if err == nil {
		s.runner.kubeconfig = kubeconfig
	}
	return err
}

// deploy applies the CRDs and the admission policies of the newest build, grants the permissions, starts the operator,
// and applies the sample. It returns an error only if no save can repair the error.
func (s *session) deploy(ctx context.Context) error {
	if s.builder.crds.text != s.appliedCRDs && len(s.builder.crds.items) > 0 { // other projects may define its kinds
		err := s.builder.crds.apply(ctx, s.kubectl, s.appliedCRDs == "", func(text string) { s.Console.Printf("%s", text) })
		if err != nil {
			return s.reportUnlessFinal(ctx, err)
		}
		s.appliedCRDs, s.arePoliciesChecked = s.builder.crds.text, false
		s.Console.Printf("applied %s", strings.Join(s.builder.crds.names(), ", "))
	}
	if err := s.applyPolicies(ctx); err != nil {
		return s.reportUnlessFinal(ctx, err)
	}
	if err := s.grant(ctx); err != nil {
		return s.reportUnlessFinal(ctx, err)
	}
	s.restart, s.runner.pause = nil, 0
	s.start(s.builder.binary)
	// The operator that ran before has ended, so nobody makes its configurations again.
	if err := s.builder.permissions.removeFormerWebhooks(ctx, s.kubectl, s.startedPermissions); err != nil {
		return s.reportUnlessFinal(ctx,
			fmt.Errorf("delete the configurations of webhooks that the operator no longer has: %w", err))
	}
	s.startedPermissions = s.builder.permissions
	return s.applySample(ctx)
}

// applyPolicies applies the admission policies of the newest build, after the definitions that they are about.
func (s *session) applyPolicies(ctx context.Context) error {
	wanted := s.builder.policies
	if wanted.text == s.appliedPolicies.text && (wanted.text == "" || s.arePoliciesChecked) {
		return nil
	}
	report := func(text string) { s.Console.Printf("%s", text) }
	if err := wanted.apply(ctx, s.plane.Kubeconfig(), s.appliedPolicies, report); err != nil {
		return err
	}
	s.appliedPolicies, s.arePoliciesChecked = wanted, true
	if len(wanted.items) > 0 {
		s.Console.Printf("applied %s", strings.Join(policy.Names(wanted.items), ", "))
	}
	return nil
}

// reportUnlessFinal prints an error that the next save may repair. With UntilReady nobody saves, so
// it returns the error.
func (s *session) reportUnlessFinal(ctx context.Context, err error) error {
	if ctx.Err() != nil || s.UntilReady {
		return err
	}
	s.reportProblems(err.Error())
	return nil
}

// start starts a binary in the place of the one that runs.
func (s *session) start(binary string) {
	old := s.runner.binary
	if s.runner.isRunning() {
		s.Console.Printf("stopping the operator")
	}
	if err := s.runner.start(binary); err != nil {
		s.Console.Printf("%v; waiting for the next save", err)
		return
	}
	s.Console.Printf("running %s (process %d)", s.Dir, s.runner.current.Pid())
	if old != "" && old != binary {
		removeBuild(old)
	}
}

// planRestart prints that the operator has ended by itself, and plans its next start.
func (s *session) planRestart() {
	pause, how := s.runner.recordEnd()
	if s.UntilReady {
		s.readySince = time.Time{}
		s.unreadyReason = fmt.Sprintf("the operator ended by itself (%s)", exitText(how))
	}
	if how == nil {
		text := "the operator ended by itself with status 0; the next save starts it again"
		s.relay.recordAbsence(untilNextSave, text)
		s.Console.Printf("%s", text)
		return
	}
	text := fmt.Sprintf("the operator ended by itself (%s); it is started again in %s, or at the next save",
		exitText(how), pause)
	s.relay.recordAbsence(pause, text)
	s.Console.Printf("%s", text)
	s.restart = time.After(pause)
}

// exitText returns how a process ended, in short.
func exitText(how error) string {
	if how == nil {
		return "status 0"
	}
	return how.Error()
}

// applySample applies sample.yaml, if the file exists and the server does not have its content.
func (s *session) applySample(ctx context.Context) error {
	name := filepath.Join(s.Dir, "sample.yaml")
	text, err := readSample(s.builder.target.sample())
	if err == nil && (text == "" || text == s.appliedSample) {
		return nil
	}
	var out string
	if err == nil {
		out, err = s.kubectl.applySample(ctx, text)
	}
	if err != nil {
		s.appliedSample = ""
		if ctx.Err() != nil || s.UntilReady {
			return fmt.Errorf("apply %s: %w", name, err)
		}
		s.Console.Printf("%s cannot be applied; the next save tries again:", name)
		s.Console.Block(err.Error())
		return nil
	}
	s.appliedSample = text
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		s.Console.Printf("applied %s from sample.yaml", strings.TrimSuffix(line, " serverside-applied"))
	}
	return nil
}

// readSample returns the text of sample.yaml. The text is empty if the file does not exist. A text that is no manifest
// is an error.
func readSample(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = manifest.Parse(text)
	}
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// checkReady reports whether the operator and the samples have been ready for readyDuration. It records since
// when they are ready, or why they are not ready.
func (s *session) checkReady(ctx context.Context) bool {
	why := s.findUnreadyReason(ctx)
	if why != "" {
		if why != s.unreadyReason {
			s.Console.Printf("waiting: %s", why)
		}
		s.unreadyReason, s.readySince = why, time.Time{}
		return false
	}
	if s.readySince.IsZero() {
		s.readySince = time.Now()
	}
	return time.Since(s.readySince) >= readyDuration
}

// findUnreadyReason returns why the operator or a sample is not ready, or "" if all are ready.
func (s *session) findUnreadyReason(ctx context.Context) string {
	if !s.runner.isRunning() {
		if s.unreadyReason != "" {
			return s.unreadyReason // how it ended
		}
		return "the operator does not run"
	}
	if s.appliedSample == "" {
		return ""
	}
	out, err := s.kubectl.run(ctx, s.appliedSample, "get", "-f", "-", "-o", "json")
	if err != nil {
		return err.Error()
	}
	var got unstructured.UnstructuredList
	if err := got.UnmarshalJSON([]byte(out)); err != nil {
		return fmt.Sprintf("read the samples: %v", err)
	}
	objects := got.Items
	if !got.IsList() || len(objects) == 0 {
		objects = []unstructured.Unstructured{{Object: got.Object}}
	}
	for _, object := range objects {
		if why := unreadyReason(object, s.builder.crds.items); why != "" {
			return objectName(object) + ": " + why
		}
	}
	return ""
}
