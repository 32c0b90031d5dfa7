package explore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/schedule"
)

// planRestored returns the faults that set the server back to a backup: one for each step.
func (e *explorer) planRestored(has func(schedule.Kind) bool) (all []schedule.Fault) {
	switch {
	case !has(schedule.Restored):
		return nil
	case e.options.Plane == nil:
		e.coverage.NotApplicable[schedule.Restored] = "the exploration may not stop components of this control plane; use --plane, or explore.Plane"
		return nil
	}
	for step := range e.options.Steps {
		all = append(all, schedule.Fault{Kind: schedule.Restored, Step: step})
	}
	return all
}

// isRestored reports whether a schedule sets the server back.
func isRestored(s schedule.Schedule) bool {
	return slices.ContainsFunc(s.Faults, func(f schedule.Fault) bool { return f.Kind == schedule.Restored })
}

// clients returns the components that remember what the API server has shown. The documentation of Kubernetes
// asks to restart them after a restoration ("Operating etcd clusters for Kubernetes").
func clients() []string { return []string{"kube-controller-manager", "kube-scheduler", "kubelet"} }

// data returns the folder of etcd's data.
func (r *run) data() string { return filepath.Join(r.explorer.options.Plane.Dir(), etcd) }

// backup returns the folder of the backup of a run.
func (r *run) backup() string { return filepath.Join(r.folder, etcd) }

// takeBackup copies the data of etcd.
func (r *run) takeBackup(ctx context.Context) error {
	return r.whileDown(ctx, []string{apiServer, etcd}, func() error {
		return os.CopyFS(r.backup(), os.DirFS(r.data()))
	})
}

// restoreBackup sets the server back to the backup, and lets the user make the step again.
func (r *run) restoreBackup(ctx context.Context, f schedule.Fault) error {
	r.recordEvent(finding.Event{Lane: finding.Server, Text: f.String(), Fault: true})
	err := r.whileDown(ctx, append(clients(), apiServer, etcd), func() error {
		if err := os.RemoveAll(r.data()); err != nil {
			return err
		}
		return os.CopyFS(r.data(), os.DirFS(r.backup()))
	})
	if err != nil {
		return err
	}
	return r.takeStep(ctx, r.schedule.Steps[f.Step])
}

// whileDown kills components, calls work, starts the components in the opposite order, and returns when the
// server serves.
func (r *run) whileDown(ctx context.Context, components []string, work func() error) error {
	r.outages.Add(1)
	defer r.outages.Add(-1)
	// The components are started in any case.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxReturn)
	defer cancel()
	var errs []error
	for _, each := range components {
		errs = append(errs, r.explorer.options.Plane.Kill(ctx, each))
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, work())
	}
	for _, each := range slices.Backward(components) {
		errs = append(errs, r.explorer.options.Plane.StartComponent(ctx, each))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.waitUntilServing(ctx)
}
