package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

type gadgetSpec struct {
	Size int `json:"size"`
}

func (gadgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Gadget"}
}

type gadget = kube.CustomResource[gadgetSpec, kube.None]

// programs holds the functions of programs that this test binary can be: if its first argument
// is "as:" and one of these names, it is a program made with Main.
var programs = map[string]func(context.Context, *kube.Client) error{
	"watcher": func(ctx context.Context, c *kube.Client) error {
		for e := range watch.Events(ctx, kube.Everywhere[gadget](c)) {
			switch e := e.(type) {
			case watch.Added[gadget]:
				fmt.Println("added", e.Object.Name)
			case watch.Synced[gadget]:
				fmt.Println("synced")
			}
		}
		fmt.Println("the watch has ended")
		return nil
	},
	"stubborn": func(context.Context, *kube.Client) error {
		fmt.Println("started")
		select {} // whatever the signal
	},
	"slow": func(ctx context.Context, _ *kube.Client) error {
		fmt.Println("started")
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond)
		fmt.Println("finished")
		return ctx.Err()
	},
	"failing":  func(context.Context, *kube.Client) error { return errors.New("it went wrong") },
	"finished": func(context.Context, *kube.Client) error { return nil },
	"panicking": func(context.Context, *kube.Client) error {
		panic("at the disco")
	},
}

// nowhere returns the kubeconfig of a server that does not exist.
func nowhere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually calls check until it returns nil, and fails t after half a minute.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal(err)
		}
	}
}

func idle(ctx context.Context, _ *kube.Client) error { <-ctx.Done(); return ctx.Err() }

// call runs a program with args, and returns its status and output.
func call(args []string, parts ...Part) (status int, stdout, stderr string) {
	return callProgram(args, Program{Parts: func() ([]Part, error) { return parts, nil }})
}

// callProgram runs p with args, and returns its status and output.
func callProgram(args []string, p Program) (status int, stdout, stderr string) {
	var out bytes.Buffer
	var errs sharedBuffer
	status = invocation{Program: p, file: "gadgets", stdout: &out, stderr: &errs}.execute(context.Background(), args)
	return status, out.String(), errs.String()
}

// sharedBuffer may be written to concurrently. While a program runs, its log is the default of
// the process, to which other tests write at the same time.
type sharedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr []string // parts of the output; none: it is empty
	}{
		{"--help", 0, []string{"gadgets is a Kubernetes operator for Gadget", "--kubeconfig FILE", "--context NAME", "--watch-namespace NAME", "gadgets permissions ", "(default: gadgets-system)", "-v ", " crd | kubectl apply -f -"}, nil},
		{"-h", 0, []string{"Usage:"}, nil},
		{"help", 0, []string{"Usage:"}, nil},
		{"run --help", 0, []string{"Usage:"}, nil},
		{"crd --help", 0, []string{"Usage:"}, nil},
		{"crd", 0, []string{"kind: CustomResourceDefinition", "name: gadgets.example.com"}, nil},
		{"walk", 2, nil, []string{`gadgets: unknown command "walk"`, "the help shows the commands of the program", "gadgets --help"}},
		{"--frobnicate", 2, nil, []string{"-frobnicate", "gadgets --help"}},
		{"crd --watch-namespace x", 2, nil, []string{"-watch-namespace", "gadgets --help"}},
		{"--namespace x", 2, nil, []string{"-namespace", "gadgets --help"}},
		{"permissions --namespace x --watch-namespace shop -v", 0, []string{"kind: Role\n", "namespace: shop\n"}, nil},
		{"permissions extra", 2, nil, []string{`no argument "extra"`}},
		{"permissions --namespace=", 2, nil, []string{"the name of a namespace is not valid"}},
		{"version", 0, []string{"gadgets (devel), yare ", runtime.Version()}, nil},
		{"--version", 0, []string{"gadgets (devel), yare ", runtime.Version()}, nil},
		{"crd --version", 0, []string{"gadgets (devel), yare ", runtime.Version()}, nil},
		{"version extra", 2, nil, []string{`no argument "extra"`}},
		{"crd extra", 2, nil, []string{`no argument "extra"`}},
		{"run extra", 2, nil, []string{`no argument "extra"`}},
		{"--watch-namespace Not_A_Name", 2, nil, []string{"Not_A_Name", "the name of a namespace is not valid"}},
		{"--watch-namespace=", 2, nil, []string{"the name of a namespace is not valid"}},
		{"--listen 8443", 2, nil, []string{"8443", "write it as :8080"}},
		{"--kubeconfig /does/not/exist", 1, nil, []string{"gadgets: load the kubeconfig", "/does/not/exist"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := call(strings.Fields(c.args), Watcher[gadget](idle))
			if status != c.status {
				t.Errorf("the status is %d, not %d", status, c.status)
			}
			checkText(t, "standard output", stdout, c.stdout)
			checkText(t, "standard error", stderr, c.stderr)
		})
	}
}

func checkText(t *testing.T, name, text string, parts []string) {
	t.Helper()
	if len(parts) == 0 && text != "" {
		t.Errorf("%s is not empty:\n%s", name, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", name, part, text)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	parse := func(args string) (*commandLine, error) {
		line, err := newCommandLine("gadgets", nil)
		if err != nil {
			t.Fatal(err)
		}
		return line, line.parse(strings.Fields(args))
	}
	l, err := parse("run --watch-namespace one -watch-namespace two --watch-namespace=three --context there --kubeconfig file -v")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(l.namespaces, ",") != "one,two,three" || l.config.Context != "there" || l.config.Kubeconfig != "file" || !l.verbosity.IsVerbose() {
		t.Errorf("parsed: %+v", l)
	}
	if l, err := parse(""); err != nil || l.command != "run" || l.verbosity.IsVerbose() || len(l.namespaces) > 0 {
		t.Errorf("without arguments: %+v, %v", l, err)
	}
	// Deployments of other operators have levels of klog.
	for text, want := range map[string]bool{"-v": true, "-v=4": true, "--v=1": true, "-v=0": false, "-v=false": false, "-v=true": true} {
		if l, err := parse(text); err != nil || l.verbosity.IsVerbose() != want {
			t.Errorf("%s: verbose is %t, %v", text, l.verbosity.IsVerbose(), err)
		}
	}
	if _, err := parse("-v=loud"); err == nil || !strings.Contains(err.Error(), "-v=4") {
		t.Errorf("-v=loud: %v", err)
	}
}

type badSpec struct{}

func (badSpec) Definition() kube.Definition { return kube.Definition{Group: "example.com"} }

// Everything that is wrong with the parts is reported together, before any request.
func TestPartsThatAreWrong(t *testing.T) {
	t.Parallel()
	type bad = kube.CustomResource[badSpec, kube.None]
	for name, c := range map[string]struct {
		parts []Part
		want  []string
	}{
		"no parts":        {nil, []string{"no parts"}},
		"a nil part":      {[]Part{nil}, []string{"part 1", "nil"}},
		"a nil function":  {[]Part{Watcher[gadget](nil)}, []string{"is nil"}},
		"a bad type":      {[]Part{Watcher[bad](idle)}, []string{"badSpec", "Version"}},
		"several of them": {[]Part{Watcher[bad](idle), Watcher[gadget](nil)}, []string{"badSpec", "is nil"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := call(nil, c.parts...)
			if status != 1 {
				t.Errorf("the status is %d", status)
			}
			checkText(t, "standard output", stdout, nil)
			checkText(t, "standard error", stderr, c.want)
			client := kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
				t.Error("there was a request")
				return nil, errors.New("not expected")
			}))
			if err := Run(t.Context(), client, c.parts...); err == nil {
				t.Error("Run has no error")
			}
		})
	}
}

// Two parts of one kind have one definition.
func TestDefinitionsAreNotRepeated(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call([]string{"crd"}, Watcher[gadget](idle), Watcher[gadget](idle))
	if n := strings.Count(stdout, "kind: CustomResourceDefinition"); n != 1 || status != 0 {
		t.Errorf("status %d, %d definitions; %s", status, n, stderr)
	}
}

type certificateSpec struct {
	SecretName string `json:"secretName"`
}

func (certificateSpec) Definition() kube.Definition {
	return kube.Definition{Group: "cert-manager.io", Version: "v1", Kind: "Certificate", Foreign: true}
}

type routeSpec struct {
	Hostnames []string `json:"hostnames,omitempty"`
}

func (routeSpec) Definition() kube.Definition {
	return kube.Definition{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute", Foreign: true}
}

type (
	certificate = kube.CustomResource[certificateSpec, kube.None]
	route       = kube.CustomResource[routeSpec, kube.None]
)

// The definition of another project was printed, cut down to the fields of the Go type, so
// that applying it overwrote the real one; and a group below k8s.io made the command fail.
func TestDefinitionsOfOtherProjectsAreNotPrinted(t *testing.T) {
	t.Parallel()
	foreign := []Part{
		controller.New(func(context.Context, *certificate, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}),
		controller.New(func(context.Context, *route, *kube.Client) (controller.Action, error) { return controller.Done(), nil }),
	}
	status, stdout, stderr := call([]string{"crd"}, append(foreign, Watcher[gadget](idle))...)
	if status != 0 || strings.Count(stdout, "kind: CustomResourceDefinition") != 1 || !strings.Contains(stdout, "gadgets.example.com") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	status, stdout, stderr = call([]string{"crd"}, foreign...)
	if status != 0 || stdout != "# gadgets has no CustomResourceDefinition of its own.\n" {
		t.Errorf("without a kind of its own: status %d, %s\n%s", status, stderr, stdout)
	}
	// The help names the kinds all the same.
	_, stdout, _ = call([]string{"--help"}, foreign...)
	checkText(t, "the help", stdout, []string{"operator for Certificate", "HTTPRoute"})
}

// Regression: the help of a program named each kind as often as parts have its type.
func TestHelpNamesAKindOnce(t *testing.T) {
	t.Parallel()
	kind, err := kube.TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	writeHelp(&text, "gadgets", nil, features{}, nil, []kube.Type{kind, kind})
	const want = "gadgets is a Kubernetes operator for Gadget (gadgets.example.com, v1).\n"
	if !strings.HasPrefix(text.String(), want) {
		t.Errorf("the help is %s", &text)
	}
}
