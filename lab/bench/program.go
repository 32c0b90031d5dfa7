package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// program is an operator that is compared: a toolkit by its defaults, or tuned.
type program struct {
	name    string
	toolkit string
	// env is the environment variable that makes the variant, and feature the cargo feature or the build tag.
	env, feature string
	path         string
	// root is the checkout of the library.
	root string
	// size is the size of the stripped binary in bytes, and gzip is its size after gzip -9.
	size, gzip float64
}

// The toolkits, and the program of another checkout.
const (
	yare              = "yare"
	controllerRuntime = "controller-runtime"
	kubeRS            = "kube-rs"
	yareBase          = "yare-base"
)

// allPrograms returns the programs in the order of the tables.
func allPrograms() []*program {
	return []*program{
		{name: yare, toolkit: yare},
		{name: yare + "-projected", toolkit: yare, env: "BENCH_PROJECTED=1"},
		{name: yareBase, toolkit: yare},
		{name: controllerRuntime, toolkit: controllerRuntime},
		{name: controllerRuntime + "-tuned", toolkit: controllerRuntime, env: "BENCH_TUNED=1"},
		{name: controllerRuntime + "-on-yare", toolkit: controllerRuntime, feature: "yare"},
		{name: kubeRS, toolkit: kubeRS},
		{name: kubeRS + "-tuned", toolkit: kubeRS, feature: "tuned"},
	}
}

// build builds the chosen programs into dir. Without cargo build leaves kube-rs out.
func build(ctx context.Context, o options, dir string) (built []*program, err error) {
	for _, p := range allPrograms() {
		_, err := exec.LookPath("cargo")
		switch {
		case !o.programs.MatchString(p.name) || p.name == yareBase && o.base == "":
		case p.toolkit == kubeRS && err != nil:
			log.Printf("%s is left out, because there is no cargo", p.name)
		default:
			if err := p.build(ctx, o, dir); err != nil {
				return nil, fmt.Errorf("build %s: %w", p.name, err)
			}
			built = append(built, p)
		}
	}
	return built, nil
}

// build builds p for distribution: optimised, stripped, and without paths of this machine. The program of another
// checkout has the present operator and the library of that checkout.
func (p *program) build(ctx context.Context, o options, dir string) error {
	log.Printf("building %s", p.name)
	p.path, p.root = filepath.Join(dir, p.name), filepath.Join(o.source, "../..")
	folder := map[string]string{yare: "operator", controllerRuntime: "controllerruntime", kubeRS: "kubers"}[p.toolkit]
	script := `go build -trimpath -ldflags="-s -w" -o "$0" .`
	switch {
	case p.toolkit == kubeRS: // both variants have the same path in the folder of cargo
		script = `cargo build --release --locked --features "$1" && cp "${CARGO_TARGET_DIR:-target}/release/kubers" "$0"`
	case p.toolkit == controllerRuntime: // the types of Cluster API would make the operator of all other rows larger
		script = `for each in "" machines; do
			go build -tags "$1,$each" -trimpath -ldflags="-s -w" -o "$0${each:+-$each}" . || exit; done`
	case p.name == yareBase:
		p.root = o.base
		script = `sed "s|=> ../..$|=> $(cd "$2" && pwd)|" ../go.mod >"$0.mod" && cat ../go.sum "$2/go.sum" >"$0.sum" && ` +
			`go build -modfile="$0.mod" -mod=mod -trimpath -ldflags="-s -w" -o "$0" .`
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", script+` && stat -c %s "$0" >"$0.size" && gzip -9c "$0" | wc -c >>"$0.size"`,
		p.path, p.feature, o.base)
	cmd.Dir = filepath.Join(o.source, folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	sizes, err := os.ReadFile(p.path + ".size")
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(string(sizes), &p.size, &p.gzip)
	return err
}

// installation returns the arguments and the environment with which p runs in a cluster, by the manifests that p prints
// itself. Its metrics are on, and it listens on free ports of loopback. The name is that of its Pod and of its Lease.
func (p *program) installation(ctx context.Context, env []string, name string) (args, more []string, err error) {
	cmd := exec.CommandContext(ctx, p.path, "manifests", "--image=bench:v1", "--listen=:8080", "--lease-name="+name)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("print the manifests: %w", err)
	}
	for _, document := range strings.Split(string(out), "\n---\n") {
		var deployment appsv1.Deployment
		if !strings.Contains(document, "\nkind: Deployment\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &deployment); err != nil {
			return nil, nil, fmt.Errorf("read the manifests: %w", err)
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		for _, arg := range container.Args {
			args = append(args, regexp.MustCompile(`=:\d+$`).ReplaceAllString(arg, "=127.0.0.1:0"))
		}
		for _, v := range container.Env {
			if v.ValueFrom != nil {
				v.Value = map[string]string{"metadata.name": name, "metadata.namespace": "default"}[v.ValueFrom.FieldRef.FieldPath]
			}
			more = append(more, v.Name+"="+v.Value)
		}
	}
	if len(args) == 0 {
		err = errors.New("the manifests have no Deployment with arguments")
	}
	return args, more, err
}

// measureCalls measures calls of a webhook: a benchmark of package operator, which is a process of its own.
func (p *program) measureCalls(ctx context.Context, r row, f figures) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark"+r.benchmark+"$",
		"-benchtime", strconv.Itoa(r.objects)+"x", "./operator")
	cmd.Dir = p.root
	out, err := cmd.CombinedOutput()
	match := regexp.MustCompile(`\s(\S+) cpu-ns/op`).FindSubmatch(out)
	if err != nil || match == nil {
		return fmt.Errorf("run %s: %w\n%s", r.benchmark, err, out)
	}
	nanoseconds, err := strconv.ParseFloat(string(match[1]), 64)
	f["call"] = nanoseconds / 1e9
	return err
}
