package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// program is an operator that is compared: a toolkit by its defaults, or tuned.
type program struct {
	name    string
	toolkit string
	// env are the environment variables that make the variant, and features the cargo
	// features.
	env      []string
	features string
	// rows are the rows that the variant takes part in. Default: all.
	rows []string
	// isBase is true for the program of another checkout of yare: see options.base.
	isBase bool
	// isElected is true for a program with leader election, as manifests install it.
	isElected bool
	path      string
	// size is the size of the stripped binary in bytes, and gzip is its size after gzip -9.
	size, gzip float64
}

// The toolkits.
const (
	yare              = "yare"
	controllerRuntime = "controller-runtime"
	kubeRS            = "kube-rs"
)

// allPrograms returns the programs in the order of the tables.
func allPrograms() []*program {
	return []*program{
		{name: yare, toolkit: yare},
		{name: yare + "-projected", toolkit: yare, env: []string{"BENCH_PROJECTED=1"}, rows: []string{"shops", "pods"}},
		{name: yare + "-elected", toolkit: yare, isElected: true, rows: []string{"one", "shops"}},
		{name: yare + "-base", toolkit: yare, isBase: true},
		{name: controllerRuntime, toolkit: controllerRuntime},
		{name: controllerRuntime + "-tuned", toolkit: controllerRuntime, env: []string{"BENCH_TUNED=1"}},
		{name: kubeRS, toolkit: kubeRS},
		{name: kubeRS + "-tuned", toolkit: kubeRS, features: "tuned"},
	}
}

// hasRow reports whether p takes part in a row.
func (p *program) hasRow(row string) bool { return len(p.rows) == 0 || slices.Contains(p.rows, row) }

// build builds the chosen programs into dir. Variants that differ in their environment alone are
// one binary. Without cargo build leaves kube-rs out.
func build(ctx context.Context, o options, dir string) ([]*program, error) {
	var built []*program
	for _, p := range allPrograms() {
		if !slices.Contains(o.programs, p.name) || p.isBase && o.base == "" {
			continue
		}
		if _, err := exec.LookPath("cargo"); p.toolkit == kubeRS && errors.Is(err, exec.ErrNotFound) {
			log.Printf("%s is left out, because there is no cargo", p.name)
			continue
		}
		same := slices.IndexFunc(built, func(b *program) bool {
			return b.toolkit == p.toolkit && b.features == p.features && b.isBase == p.isBase
		})
		if same >= 0 {
			p.path, p.size, p.gzip = built[same].path, built[same].size, built[same].gzip
		} else {
			log.Printf("building %s", p.name)
			source := o.source
			if p.isBase {
				source = filepath.Join(o.base, "lab", "bench")
				if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
					source = filepath.Join(o.base, "bench") // its place in earlier commits
				}
			}
			if err := p.build(ctx, source, dir); err != nil {
				return nil, fmt.Errorf("build %s: %w", p.name, err)
			}
		}
		built = append(built, p)
	}
	return built, nil
}

// build builds p for distribution: optimised, stripped, and without paths of this machine.
func (p *program) build(ctx context.Context, source, dir string) error {
	p.path = filepath.Join(dir, p.name)
	var cmd *exec.Cmd
	switch p.toolkit {
	case yare:
		cmd = exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.path, ".")
		cmd.Dir = filepath.Join(source, "operator")
	case controllerRuntime:
		cmd = exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.path, ".")
		cmd.Dir = filepath.Join(source, "controllerruntime")
	case kubeRS:
		cmd = exec.CommandContext(ctx, "cargo", "build", "--release", "--locked", "--features", p.features)
		cmd.Dir = filepath.Join(source, "kubers")
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	if p.toolkit == kubeRS {
		// Both variants have the same path in the folder of cargo.
		target := os.Getenv("CARGO_TARGET_DIR")
		if target == "" {
			target = filepath.Join(cmd.Dir, "target")
		}
		data, err := os.ReadFile(filepath.Join(target, "release", "kubers"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.path, data, 0o755); err != nil {
			return err
		}
	}
	return p.measureSizes()
}

// measureSizes sets the sizes of p.
func (p *program) measureSizes() error {
	data, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	p.size, p.gzip = float64(len(data)), float64(packed.Len())
	return nil
}
