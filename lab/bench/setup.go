package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// setup describes the machine, the versions and the flags of a run.
type setup map[string]any

// newSetup returns the setup of this run. Values that cannot be found out are empty.
func newSetup(ctx context.Context, o options) setup {
	// Folders are left out: they mean nothing on another machine.
	folders := regexp.MustCompile(`--?(base|out)[ =]\S+ ?`)
	s := setup{"flags": folders.ReplaceAllString(strings.Join(os.Args[1:], " "), "")}
	// A line of go.mod has a name and a version. Cargo.lock has name = "kube" and version = "5.0.0" in two lines.
	const module, crate = `sed -n 's|.*$0 v|v|p' `, `grep -A1 "^name = \"$0\"" kubers/Cargo.lock | sed -n 's/version = //p' | tr -d '"'`
	base := o.base
	if base == "" {
		base = "/" // has no commit
	}
	for name, script := range map[string]string{
		"time":                           `date -u +%FT%TZ`,
		"processor":                      `sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1`,
		"cores":                          `nproc`,
		"memory":                         `sed -n 's/^MemTotal: *//p' /proc/meminfo`,
		"kernel":                         `uname -r`,
		"go":                             `go env GOVERSION`,
		"rust":                           `rustc --version`,
		"commit":                         `git describe --always --abbrev=12 --exclude='*' --dirty=+changes`,
		"base":                           `git -C "` + base + `" describe --always --abbrev=12 --exclude='*'`,
		"k8s.io/kubernetes":              module + `../../controlplane/go.mod`,
		"sigs.k8s.io/controller-runtime": module + `controllerruntime/go.mod`,
		"k8s.io/client-go":               module + `controllerruntime/go.mod`,
		"kube":                           crate, "k8s-openapi": crate, "tokio": crate, "hyper": crate, "rustls": crate, "mimalloc": crate,
	} {
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(script, "$0", name))
		cmd.Dir = o.source
		out, _ := cmd.Output()
		s[name] = strings.TrimSpace(string(out))
	}
	return s
}
