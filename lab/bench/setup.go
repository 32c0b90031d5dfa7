package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// setup describes how a run was made.
type setup struct {
	Time      time.Time `json:"time"`
	Processor string    `json:"processor"`
	Cores     int       `json:"cores"`
	Memory    string    `json:"memory"`
	Kernel    string    `json:"kernel"`
	Go        string    `json:"go"`
	Rust      string    `json:"rust,omitempty"`
	Commit    string    `json:"commit"`
	// Libraries has the versions of the libraries of the programs.
	Libraries map[string]string `json:"libraries"`
	Flags     string            `json:"flags"`
}

// newSetup returns the setup of this run. Values that cannot be found out are empty.
func newSetup(ctx context.Context, o options) *setup {
	output := func(dir, name string, args ...string) string {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	firstMatch := func(path, pattern string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		if match := regexp.MustCompile(pattern).FindSubmatch(text); match != nil {
			return string(match[1])
		}
		return ""
	}
	s := &setup{
		Time:      time.Now().UTC().Truncate(time.Second),
		Processor: firstMatch("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`),
		Cores:     runtime.NumCPU(),
		Memory:    firstMatch("/proc/meminfo", `(?m)^MemTotal:\s*(.*)$`),
		Kernel:    strings.TrimSpace(firstMatch("/proc/sys/kernel/osrelease", `(.*)`)),
		Go:        strings.TrimPrefix(output(o.source, "go", "env", "GOVERSION"), "go"),
		Rust:      output(o.source, "rustc", "--version"),
		Commit:    output(o.source, "git", "rev-parse", "--short=12", "HEAD"),
		Libraries: map[string]string{},
		Flags:     strings.Join(os.Args[1:], " "),
	}
	if output(o.source, "git", "status", "--porcelain", "--", ":/*.go", ":/*.rs", ":/*go.mod", ":/*Cargo.lock") != "" {
		s.Commit += "+changes"
	}
	for _, module := range []string{"sigs.k8s.io/controller-runtime", "k8s.io/client-go"} {
		s.Libraries[module] = output(o.source+"/controllerruntime", "go", "list", "-m", "-f", "{{.Version}}", module)
	}
	for _, crate := range []string{"kube", "k8s-openapi", "tokio", "hyper", "rustls", "mimalloc"} {
		s.Libraries[crate] = firstMatch(o.source+"/kubers/Cargo.lock", `(?m)^name = "`+crate+`"\nversion = "(.*)"$`)
	}
	s.Libraries["kubernetes"] = firstMatch(o.source+"/../../controlplane/go.mod", `k8s\.io/kubernetes (v\S+)`)
	return s
}
