package explore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// exploration is one call of [Run], or one run of the command of [Command].
type exploration struct {
	settings engine.Settings
	// cluster is the cluster of Settings.OwnCluster, or nil.
	cluster *yaretest.Cluster
	// sampleFile is the file of the samples, reportFile the file for the findings, and replayFile the report to
	// replay. Each may be empty.
	sampleFile, reportFile, replayFile string
	// valuesFile and pairsFile are the files of second samples. Each may be empty.
	valuesFile, pairsFile string

	// The following fields are set by open.
	operator engine.Launcher
	// installed are the objects to install before the first run, as YAML documents.
	installed []byte
	// policies are the admission policies to apply before the first run.
	policies []unstructured.Unstructured
}

// open compiles the operator into a folder if necessary, and reads the objects to install and the samples.
func (e *exploration) open(ctx context.Context, o Operator, folder string) error {
	opened, err := o.open(ctx, folder)
	if err != nil {
		return err
	}
	e.operator, e.installed, e.policies = opened.launcher, opened.installed, opened.policies
	if e.settings.SecondSamples, err = readSecondSamples("--values", e.valuesFile); err != nil {
		return err
	}
	if e.settings.PairSamples, err = readSecondSamples("--pairs", e.pairsFile); err != nil {
		return err
	}
	if len(e.settings.Samples) > 0 || len(e.settings.Steps) > 0 || e.replayFile != "" {
		return nil
	}
	if e.sampleFile == "" {
		e.sampleFile = opened.sampleFile
	}
	if e.settings.Samples, err = engine.ReadSamples(e.sampleFile); err != nil {
		return fmt.Errorf("read the samples: %w: name them with explore.Settings.Samples, or with --sample", err)
	}
	return nil
}

// readSecondSamples returns the objects in a file that a flag names, or none for an empty path.
func readSecondSamples(flag, path string) ([]json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	samples, err := engine.ReadSamples(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of %s: %w", flag, err)
	}
	return samples, nil
}

// install installs the objects and policies that the operator needs in the cluster. report gets texts for the user.
func (e *exploration) install(ctx context.Context, report func(string)) error {
	if len(e.installed) > 0 {
		if err := engine.Install(ctx, e.settings.Config, e.installed); err != nil {
			return fmt.Errorf("install the kinds of %s: %w", e.operator, err)
		}
	}
	if len(e.policies) == 0 {
		return nil
	}
	client, err := kube.NewClient(e.settings.Config)
	if err == nil {
		err = policy.Apply(ctx, client, e.policies, report)
	}
	if err != nil {
		return fmt.Errorf("apply the policies of %s: %w", e.operator, err)
	}
	return nil
}

// narrowPolicies narrows the policies to the namespaces of the exploration.
func (e *exploration) narrowPolicies() (err error) {
	e.settings.NamespaceLabel = strings.ToLower(rand.Text())
	suffix := e.settings.NamespaceLabel
	e.policies, err = policy.Narrow(e.policies, suffix, engine.ExplorationLabel, []string{suffix})
	return err
}

// removePolicies removes the policies that install has applied.
func (e *exploration) removePolicies(ctx context.Context) error {
	if len(e.policies) == 0 {
		return nil
	}
	client, err := kube.NewClient(e.settings.Config)
	if err != nil {
		return err
	}
	return policy.Remove(ctx, client, e.policies)
}

// replayTries is how often the runs of a finding are made again.
const replayTries = 3

// run explores the operator, or replays the findings of a file.
func (e *exploration) run(ctx context.Context) (finding.Record, error) {
	if e.replayFile != "" {
		return engine.ReplayFile(ctx, e.operator, e.settings, e.replayFile, replayTries)
	}
	return engine.Explore(ctx, e.operator, e.settings)
}

// writeReports writes the text of a record to w, and the record to the file for the findings.
func (e *exploration) writeReports(w io.Writer, record finding.Record) error {
	err := report.Text(w, record)
	if e.reportFile != "" {
		err = errors.Join(err, report.WriteFile(e.reportFile, record))
	}
	return err
}
