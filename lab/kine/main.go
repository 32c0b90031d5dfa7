// Command kine runs a command against a control plane whose objects are in SQL, as those of k3s are. kine serves the API of
// etcd from a file of SQLite. The environment variable YARETEST_KUBECONFIG of the command names the control plane.
//
//	go -C lab/kine run . go -C ../.. test ./internal/follow ./internal/cache ./internal/lease
//
// It is a module of its own, so that nobody who uses yare inherits the databases.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/endpoint"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
)

// sqliteOptions are those of the command kine.
const sqliteOptions = "?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate"

func main() {
	process.EndWithGo()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("there is no command: name one, such as go test ./...")
	}
	folder, err := os.MkdirTemp("", "yare-kine-") // the path of a socket must be short
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var running sync.WaitGroup
	defer running.Wait()
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	// The other values are the defaults of the command kine, which Listen does not know.
	etcd, err := endpoint.Listen(serving, endpoint.Config{
		Listener:             "unix://" + filepath.Join(folder, "kine.sock"),
		Endpoint:             "sqlite://" + filepath.Join(folder, "state.db") + sqliteOptions,
		WaitGroup:            &running,
		ConnectionPoolConfig: generic.ConnectionPoolConfig{MaxIdle: 20, MaxIdleTime: 2 * time.Minute},
		PollInterval:         time.Second, PollBatchSize: 500, NotifyInterval: 5 * time.Second, EmulatedETCDVersion: "3.5.13",
		CompactTimeout: 5 * time.Second, CompactMinRetain: 1000, CompactBatchSize: 1000,
	})
	if err != nil {
		return fmt.Errorf("start kine: %w", err)
	}
	p, err := plane.Start(ctx, plane.Options{Etcd: etcd.Endpoints[0], Console: console.New(os.Stderr, "kine")})
	if err != nil {
		return err
	}
	defer p.Close()
	label := exec.CommandContext(ctx, p.Binary(),
		"kubectl", "--kubeconfig", p.Kubeconfig(), "label", "namespace", "kube-system", "yare-test=allowed")
	if said, err := label.CombinedOutput(); err != nil {
		return fmt.Errorf("allow tests by a label: %w: %s", err, said)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "YARETEST_KUBECONFIG="+p.Kubeconfig())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
