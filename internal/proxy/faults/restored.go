package faults

import (
	"context"
	"os"
	"path/filepath"
)

// Restored sets the server back to a backup from before the step, when the step has come to rest.
// The user makes the step again.
const Restored Kind = "restored"

// restored is the family of [Restored].
type restored struct{ baseFamily }

func (restored) Describe() Description {
	return Description{OptIn: []Kind{Restored}, InterruptsServer: true, NeedsOwnControlPlane: true}
}

// Plan plans one restoration for each step.
func (restored) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	switch {
	case !in.has(Restored):
		return Plan{}, nil
	case !in.CanStopComponents:
		return newNotApplicable(whyNotStopped, Restored), nil
	}
	return newPlan(in.afterEachStep(Restored)), nil
}

// BeforeStep copies the data of etcd.
func (restored) BeforeStep(ctx context.Context, run *Run, _ Fault) error {
	return whileKilled(ctx, run, []string{apiServer, etcd}, func() error {
		return os.CopyFS(backupFolder(run), os.DirFS(etcdFolder(run)))
	})
}

// AfterStep sets the server back to the backup, and lets the user make the step again.
func (restored) AfterStep(ctx context.Context, run *Run, f Fault) error {
	run.RecordFault(InServer, f.String())
	err := whileKilled(ctx, run, append(rememberingComponents(), apiServer, etcd), func() error {
		if err := os.RemoveAll(etcdFolder(run)); err != nil {
			return err
		}
		return os.CopyFS(etcdFolder(run), os.DirFS(backupFolder(run)))
	})
	if err != nil {
		return err
	}
	return run.TakeStep(ctx, f.Step)
}

// rememberingComponents returns the components that remember what the API server has shown. The documentation of
// Kubernetes asks to restart them after a restoration ("Operating etcd clusters for Kubernetes").
func rememberingComponents() []string {
	return []string{"kube-controller-manager", "kube-scheduler", "kubelet"}
}

// whileKilled calls work while components are down.
func whileKilled(ctx context.Context, run *Run, components []string, work func() error) error {
	return whileStopped(ctx, run, run.Components.Kill, run.Components.StartComponent, components, work)
}

// etcdFolder returns the folder of etcd's data.
func etcdFolder(run *Run) string { return filepath.Join(run.Components.Dir(), etcd) }

// backupFolder returns the folder of the backup of a run.
func backupFolder(run *Run) string { return filepath.Join(run.Folder, etcd) }
