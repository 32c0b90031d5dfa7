package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/policy"
	osprocess "github.com/yare-go/yare/internal/plane/process"
)

// Binary is the launcher of an operator that is a compiled program. The program need not use yare. In its
// arguments and environment {kubeconfig}, {namespace}, {outside} and {port1} to {port9} are filled in.
type Binary struct {
	Path string
	Args []string
	// Env is added to the environment: NAME=VALUE, or the NAME of a variable of this process. The rest is PATH,
	// KUBECONFIG, POD_NAMESPACE, and a HOME and a TMPDIR of the run.
	Env []string
	// Account is the ServiceAccount whose permissions the requests of the program carry. Default: the
	// permissions of an administrator. Programs made with yare refuse their own undeclared requests.
	Account *Account
	// CoverFolder is where a program compiled with go build -cover writes which statements have run. Then a
	// run ends with SIGTERM, because a program that is killed writes nothing. Default: nothing is counted.
	CoverFolder string
}

// String returns the name of the program.
func (b Binary) String() string { return filepath.Base(b.Path) }

// CRDs returns the output of the program's command crd. Programs that use yare have this command.
// An error has what the program printed.
func (b Binary) CRDs(ctx context.Context) ([]byte, error) {
	out, printed, err := b.output(ctx, "crd")
	if err != nil {
		return nil, fmt.Errorf("%s crd: %w: an operator that does not use yare needs files to install; its last lines: %s",
			b.Path, err, printed)
	}
	return out, nil
}

// Policies returns the admission policies that the program's command manifests prints. A program without this command
// has none.
func (b Binary) Policies(ctx context.Context) ([]unstructured.Unstructured, error) {
	args := []string{"manifests", "--image", "explore"}
	if b.Account != nil {
		args = append(args, "--namespace", b.Account.Namespace)
	}
	out, printed, err := b.output(ctx, args...)
	if err != nil && strings.Contains(printed, `unknown command "manifests"`) {
		return nil, nil
	}
	var objects []unstructured.Unstructured
	if err == nil {
		objects, err = manifest.Parse(out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s manifests: %w; its last lines: %s", b.Path, err, printed)
	}
	return policy.Select(objects), nil
}

// output returns the standard output of a command of the program, and the last lines of the standard error.
func (b Binary) output(ctx context.Context, args ...string) (out []byte, problems string, err error) {
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(folder)
	cmd := exec.CommandContext(ctx, b.Path, args...)
	cmd.Env = b.environment(processSettings{folder: folder}, strings.NewReplacer())
	var printed output
	cmd.Stderr = &printed
	out, err = cmd.Output()
	return out, printed.last(exitLines), err
}

func (b Binary) account() *Account { return b.Account }

func (b Binary) coverFolder() string { return b.CoverFolder }

func (Binary) close() error { return nil }

func (b Binary) launch(s processSettings) (process, error) {
	fill, err := b.filler(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.Path)
	for _, arg := range b.Args {
		cmd.Args = append(cmd.Args, fill.Replace(arg))
	}
	webhooks, err := s.webhooks.addProcess(s.kubeconfig)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(b.environment(s, fill), webhooks...)
	cmd.Stdout, cmd.Stderr = s.output, s.output
	p, err := osprocess.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", b.Path, err)
	}
	return &childProcess{process: p, isCounted: b.CoverFolder != "", activityFile: s.activityFile()}, nil
}

// environment returns the environment of a process. Of the environment of this process it has only PATH and what Env
// names. So the runs of a user and of a CI are the same, and no credential of the user reaches the program.
func (b Binary) environment(s processSettings, fill *strings.Replacer) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.folder, "TMPDIR=" + s.folder,
		"KUBECONFIG=" + s.kubeconfig, access.CheckVariable + "=1", "POD_NAMESPACE=" + s.namespace,
		clock.ActivityVariable + "=" + s.activityFile(),
	}
	if b.CoverFolder != "" {
		env = append(env, "GOCOVERDIR="+b.CoverFolder)
	}
	for _, variable := range b.Env {
		if strings.Contains(variable, "=") {
			env = append(env, fill.Replace(variable))
		} else if value, isSet := os.LookupEnv(variable); isSet {
			env = append(env, variable+"="+value)
		}
	}
	return env
}

// filler returns the replacer of the placeholders in arguments and in the environment.
func (b Binary) filler(s processSettings) (*strings.Replacer, error) {
	pairs := []string{"{kubeconfig}", s.kubeconfig, "{namespace}", s.namespace, "{outside}", s.relayAddress}
	text := strings.Join(slices.Concat(b.Args, b.Env), " ")
	for i := 1; i <= 9; i++ {
		placeholder := fmt.Sprintf("{port%d}", i)
		if !strings.Contains(text, placeholder) {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port for %s: %w", placeholder, err)
		}
		pairs = append(pairs, placeholder, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
		if err := listener.Close(); err != nil {
			return nil, err
		}
	}
	return strings.NewReplacer(pairs...), nil
}

// childProcess is a process of a program.
type childProcess struct {
	process *osprocess.Process
	// isCounted is true if the program writes which statements have run when it ends in an orderly way.
	isCounted bool
	// activityFile is the file in which a program that uses yare writes whether it works. Other programs make no such
	// file.
	activityFile string
}

// stopTimeout is how long a program may take to end in an orderly way.
const stopTimeout = 10 * time.Second

func (c *childProcess) isWorking() bool {
	content, err := os.ReadFile(c.activityFile)
	return err == nil && string(content) != clock.Idle
}

func (c *childProcess) advance(context.Context) (bool, error) { return false, nil }

func (c *childProcess) writeCoverage() {
	if c.isCounted {
		c.process.Stop(syscall.SIGTERM, false, stopTimeout)
	}
}

func (c *childProcess) kill() { c.process.Stop(syscall.SIGKILL, false, 0) }

func (c *childProcess) ended() <-chan struct{} { return c.process.Done() }

func (c *childProcess) err() error {
	<-c.process.Done()
	if err := c.process.Err(); err != nil {
		return err
	}
	return errors.New("the program ended with exit status 0")
}
