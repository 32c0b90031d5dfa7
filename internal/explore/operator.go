package explore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/internal/plane/process"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// Operator is a program that is explored.
type Operator interface {
	// String returns the name of the program.
	String() string
	// start starts one life of the program. The life reaches the API server by l only.
	start(l life) (instance, error)
}

// life holds the settings of one life of a program.
type life struct {
	config     *kube.Config
	kubeconfig string
	namespace  string
	log        *lines
}

// instance is one life of a program.
type instance interface {
	// advance lets time pass for the program. It reports false if the program has the time of the
	// machine.
	advance(ctx context.Context) (bool, error)
	// kill ends the life as a crash does, and returns when nothing of it runs any more. The life has
	// been cut off from the server before.
	kill()
	// ended returns a channel that is closed when the life is over.
	ended() <-chan struct{}
	// err returns why the life is over, if the program ended by itself.
	err() error
}

// Parts returns the operator that consists of the parts that a function returns. Each life of the
// operator runs in this process, with parts of its own. The field manager of the parts has the name of the
// operator.
func Parts(name string, parts func() []operator.Part) Operator { return inProcess{name, parts} }

type inProcess struct {
	name  string
	parts func() []operator.Part
}

func (p inProcess) String() string { return p.name }

func (p inProcess) start(l life) (instance, error) {
	client, err := kube.NewClient(l.config)
	if err != nil {
		return nil, err
	}
	client = client.WithFieldManager(p.name).InNamespaces(l.namespace)
	log := slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	i := &partsInstance{clock: clock.New(), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(access.WithCheck(logctx.WithProgramLogger(clock.With(context.Background(), i.clock), log)))
	i.cancel = cancel
	go func() {
		defer close(i.done)
		i.failure = operator.Run(ctx, client, p.parts()...)
		if i.failure == nil && ctx.Err() == nil {
			i.failure = errors.New("the parts ended by themselves")
		}
	}()
	return i, nil
}

// partsInstance is a life of parts.
type partsInstance struct {
	clock  *clock.Clock
	cancel context.CancelFunc
	done   chan struct{}
	// failure is set before done is closed.
	failure error
}

const (
	// idleTime is how much time passes for parts at rest.
	idleTime = 10 * time.Minute
	// idlePatience is how long parts may take to come to rest at a time.
	idlePatience = time.Minute
)

func (i *partsInstance) advance(ctx context.Context) (bool, error) {
	return true, i.clock.Advance(ctx, idleTime, idlePatience)
}

func (i *partsInstance) kill() {
	i.cancel()
	<-i.done
}

func (i *partsInstance) ended() <-chan struct{} { return i.done }

func (i *partsInstance) err() error {
	<-i.done
	return i.failure
}

// Binary is an operator that is a program, which need not use yare. In its arguments and environment
// {kubeconfig}, {namespace} and {port1} to {port9} are filled in.
type Binary struct {
	Path string
	Args []string
	// Env is added to the environment of this process. KUBECONFIG is set.
	Env []string
	// Account is the ServiceAccount whose permissions the requests of the program carry. Default: the
	// permissions of an administrator. Programs made with yare refuse their own undeclared requests.
	Account *Account
	// CoverFolder is where a program that was compiled with go build -cover writes which statements have run.
	// Then a run ends with SIGTERM, because a program that is killed writes nothing. Default: nothing is
	// counted.
	CoverFolder string
}

func (b Binary) String() string { return filepath.Base(b.Path) }

func (b Binary) start(l life) (instance, error) {
	fill, err := b.filler(l)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.Path)
	for _, arg := range b.Args {
		cmd.Args = append(cmd.Args, fill.Replace(arg))
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig, access.CheckVariable+"=1", "POD_NAMESPACE="+l.namespace)
	for _, variable := range b.Env {
		cmd.Env = append(cmd.Env, fill.Replace(variable))
	}
	if b.CoverFolder != "" {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+b.CoverFolder)
	}
	cmd.Stdout, cmd.Stderr = l.log, l.log
	p, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", b.Path, err)
	}
	return &binaryInstance{process: p, isCounted: b.CoverFolder != ""}, nil
}

// filler returns the replacer of the placeholders of a life.
func (b Binary) filler(l life) (*strings.Replacer, error) {
	pairs := []string{"{kubeconfig}", l.kubeconfig, "{namespace}", l.namespace}
	text := strings.Join(append(b.Args, b.Env...), " ")
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

// binaryInstance is a life of a program.
type binaryInstance struct {
	process *process.Process
	// isCounted is true if the program writes which statements have run when it ends in an orderly way.
	isCounted bool
}

// orderlyEnd is how long a program may take to end in an orderly way.
const orderlyEnd = 10 * time.Second

// endOrderly ends the life in an orderly way if it writes which statements have run.
func (i *binaryInstance) endOrderly() {
	if i.isCounted {
		i.process.Stop(syscall.SIGTERM, false, orderlyEnd)
	}
}

func (i *binaryInstance) advance(context.Context) (bool, error) { return false, nil }

func (i *binaryInstance) kill() { i.process.Stop(syscall.SIGKILL, false, 0) }

func (i *binaryInstance) ended() <-chan struct{} { return i.process.Done() }

func (i *binaryInstance) err() error {
	<-i.process.Done()
	if err := i.process.Err(); err != nil {
		return err
	}
	return errors.New("the program ended with exit status 0")
}
