package plane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane/console"
)

func TestStartAndSteer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	var output safeBuffer
	p, err := Start(t.Context(), Options{Binary: fakeBinary(t), Kubeconfig: file, Console: console.New(&output, "yare")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Kubeconfig() != file || p.Server() != "https://127.0.0.1:1" || p.Dir() == "" || p.StartDuration() <= 0 {
		t.Errorf("ready with %+v", p.ready)
	}
	ctx := t.Context()
	for verb, do := range map[string]func(context.Context, string) error{
		"stop": p.Stop, "kill": p.Kill, "start": p.StartComponent, "restart": p.Restart, "resume": p.Resume,
	} {
		if err := do(ctx, "kube-apiserver"); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		err := do(ctx, "nothing")
		if err == nil || !strings.Contains(err.Error(), verb+" nothing: there is no component nothing") {
			t.Errorf("%s of nothing: %v", verb, err)
		}
	}
	if revision, err := p.Compact(ctx); err != nil || revision != 42 {
		t.Errorf("Compact() = %d, %v", revision, err)
	}
	hung, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.Pause(hung, "etcd"); !errors.Is(err, context.Canceled) {
		t.Errorf("a command without an answer: %v", err)
	}
	if !strings.Contains(output.String(), "kube-apiserver ended unexpectedly: on purpose; it is started again") {
		t.Errorf("an unexpected end is not reported:\n%s", output.String())
	}
	pids := p.Pids()
	p.Close()
	p.Close()
	if err := p.Err(); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig is still there: %v", err)
	}
	if _, err := os.Stat(p.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	for name, pid := range pids {
		if !hasEnded(pid) {
			t.Errorf("%s still runs", name)
		}
	}
	if err := p.Stop(ctx, "etcd"); err == nil {
		t.Error("a plane that is gone takes commands")
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"fail": "no space left on device", "die": "oh dear", "quit": "it ended before it was ready (exit status 0)"} {
		t.Run(arg, func(t *testing.T) {
			t.Parallel()
			_, err := Start(t.Context(), Options{Binary: fakeBinary(t), APIServerArgs: []string{arg}})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("Start() = %v; want %q in it", err, want)
			}
		})
	}
}

func TestUnexpectedEnd(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), Options{Binary: fakeBinary(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Kill(t.Context(), "up"); err == nil {
		t.Error("an answer from a plane that is gone")
	}
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Err() = %v", err)
	}
}

// When a process that started a plane is killed, the plane ends by the end of its input.
func TestParentKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, fakeBinary(t))
	parent.Env = environ(helperVariable + "=start")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var up, etcd int
	var kubeconfig string
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &up, &etcd, &kubeconfig)
	}
	if err != nil {
		t.Fatalf("the parent output %q: %v", line, err)
	}
	kill9(t, parent.Process.Pid)
	_ = parent.Wait()
	eventually(t, "plane and component are gone", func() bool { return hasEnded(up) && hasEnded(etcd) })
	eventually(t, "the kubeconfig is gone", func() bool {
		_, err := os.Stat(kubeconfig)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"1.json": `{"pid":1,"title":"a dead one"}`})
	first, err := registerIn(dir, 11, Running{Title: "yare up", Kubeconfig: "/a"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := registerIn(dir, 12, Running{Title: "yare dev .", Kubeconfig: "/b"})
	if err != nil {
		t.Fatal(err)
	}
	titles := func() string {
		running, err := listIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		var titles []string
		for _, r := range running {
			titles = append(titles, r.Title)
		}
		return strings.Join(titles, ",")
	}
	if got := titles(); got != "yare up,yare dev ." {
		t.Errorf("running: %s", got)
	}
	first.remove()
	if got := titles(); got != "yare dev ." {
		t.Errorf("after the first: %s", got)
	}
	_ = second.file.Close() // As the kernel does for a process that dies.
	if got := titles(); got != "" {
		t.Errorf("after both: %s", got)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) > 0 {
		t.Errorf("not swept: %v", left)
	}
}

func TestBuildsFor(t *testing.T) {
	t.Parallel()
	flags := strings.Join(buildFlags("v1.36.3"), " ")
	for _, want := range []string{"-trimpath", "-s -w", "version.gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36", "gitTreeState=clean"} {
		if !strings.Contains(flags, want) {
			t.Errorf("the flags %q lack %q", flags, want)
		}
	}
	tool := goTool{env: environment{"HOME=/h", "GOFLAGS=-mod=vendor", "GOOS=plan9", "GOWORK=/w", "GOPROXY=p"}}
	env := strings.Join(tool.buildEnv(), " ")
	for _, want := range []string{"HOME=/h", "GOPROXY=p", "GOWORK=off", "CGO_ENABLED=0", "GOOS=" + runtime.GOOS} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment %q lacks %q", env, want)
		}
	}
	if strings.Contains(env, "vendor") || strings.Contains(env, "plan9") {
		t.Errorf("the environment %q has what is the user's", env)
	}
}
